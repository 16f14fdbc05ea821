package main

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// errCreate is how a creation fails.
var errCreate = errors.New("create failed")

// studio directs the creations of a cache: each waits until the case says how
// it ends.
type studio struct {
	trial *trial

	// obedient creations end with their context's error when it ends.
	obedient bool

	mu       sync.Mutex
	all      []*creation // in the order in which they began
	open     bool        // creations end at once
	now, max map[string]int
}

// creation is one call of the create function. That of a batch has the keys
// that were asked for as its key, in order, with spaces between.
type creation struct {
	key    string
	ctx    context.Context
	serial int
	fate   chan func() (*engine, error)
	edit   func(map[string]*engine) // changes what a batch returns
	beside bool                     // a batch returns values beside its error
}

func newStudio(t *trial) *studio {
	return &studio{trial: t, now: make(map[string]int), max: make(map[string]int)}
}

// create is the create function.
func (s *studio) create(ctx context.Context, key string) (*engine, error) {
	c := s.begin(ctx, key)
	defer s.finish(c)
	if s.obedient {
		select {
		case fate := <-c.fate:
			return fate()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return (<-c.fate)()
}

// createMany is the create function of batches. Each key gets an engine with
// the serial of the creation.
func (s *studio) createMany(ctx context.Context, keys []string) (map[string]*engine, error) {
	keys = slices.Sorted(slices.Values(keys))
	c := s.begin(ctx, strings.Join(keys, " "))
	defer s.finish(c)
	_, err := (<-c.fate)()
	if err != nil && !c.beside {
		return nil, err
	}
	made := make(map[string]*engine)
	for _, key := range keys {
		made[key] = &engine{key, c.serial}
	}
	if c.edit != nil {
		c.edit(made)
	}
	return made, err
}

func (s *studio) begin(ctx context.Context, key string) *creation {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &creation{key: key, ctx: ctx, serial: len(s.all) + 1, fate: make(chan func() (*engine, error), 1)}
	s.all = append(s.all, c)
	s.now[key]++
	s.max[key] = max(s.max[key], s.now[key])
	if s.open {
		c.returns()
	}
	return c
}

func (s *studio) finish(c *creation) {
	s.mu.Lock()
	s.now[c.key]--
	s.mu.Unlock()
}

// count returns how many creations have begun.
func (s *studio) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.all)
}

// made returns how many creations of key have begun, in batches or alone.
func (s *studio) made(key string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, c := range s.all {
		if slices.Contains(strings.Fields(c.key), key) {
			n++
		}
	}
	return n
}

// overlap returns how many creations of key have run at the same time.
func (s *studio) overlap(key string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.max[key]
}

// await waits for the n-th creation to begin, from 1, and ends the case if it
// never does.
func (s *studio) await(n int) *creation {
	if !s.trial.waitFor(func() bool { return s.count() >= n }) {
		s.trial.end(hang, "creation %d does not begin", n)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all[n-1]
}

// others lets creations that have not begun yet return at once.
func (s *studio) others() {
	s.mu.Lock()
	s.open = true
	s.mu.Unlock()
}

// release lets all creations return, those that wait and those to come.
func (s *studio) release() {
	s.others()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.all {
		c.returns()
	}
}

// Each of these says how a creation ends. The first one counts.

func (c *creation) returns() {
	c.ends(func() (*engine, error) { return &engine{c.key, c.serial}, nil })
}

// returnsEdited ends a batch that returns its keys after edit.
func (c *creation) returnsEdited(edit func(map[string]*engine)) {
	c.edit = edit // before the batch can see its fate
	c.returns()
}

// failsBeside ends a batch that returns err, and its keys after edit.
func (c *creation) failsBeside(err error, edit func(map[string]*engine)) {
	c.edit, c.beside = edit, true
	c.fails(err)
}

func (c *creation) fails(err error) { c.ends(func() (*engine, error) { return nil, err }) }

func (c *creation) panics() { c.ends(func() (*engine, error) { panic("create panicked") }) }

func (c *creation) exits() {
	c.ends(func() (*engine, error) { runtime.Goexit(); return nil, nil })
}

func (c *creation) ends(fate func() (*engine, error)) {
	select {
	case c.fate <- fate:
	default:
	}
}
