package main

import (
	"errors"
	"fmt"
	"go/ast"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// reach tells which functions each test comes to, by test and by the function's
// place in a together. A test does with a mutant of any other function what it
// does without.
type reach map[string]map[int]bool

// follow runs the tests with everyCopy, one at a time, but for those that are
// run apart.
func (b *baseline) follow(g *toolchain, workers int) (reach, error) {
	var mu sync.Mutex
	var failed error
	r := reach{}
	tests := slices.DeleteFunc(slices.Collect(maps.Keys(b.took)), func(test string) bool { return slices.Contains(b.apart, top(test)) })
	each(workers, tests, func(worker int, test string) {
		places, err := b.trace(g, test, filepath.Join(g.temp, "reached"+strconv.Itoa(worker)))
		mu.Lock()
		defer mu.Unlock()
		r[test], failed = places, errors.Join(failed, err)
	})
	return r, failed
}

// each calls f for all items, and returns when all calls have. Each of the workers, which
// are numbered, makes one call after the other.
func each[T any](workers int, items []T, f func(worker int, item T)) {
	queue := make(chan T)
	var group sync.WaitGroup
	for w := range workers {
		group.Go(func() {
			for item := range queue {
				f(w, item)
			}
		})
	}
	for _, item := range items {
		queue <- item
	}
	close(queue)
	group.Wait()
}

// trace runs a test with everyCopy, and returns the functions it comes to.
func (b *baseline) trace(g *toolchain, test, path string) (map[int]bool, error) {
	if err := os.WriteFile(path, nil, 0o666); err != nil {
		return nil, err
	}
	p := program{binary: b.joined, chosen: everyCopy, trace: path}
	if r := b.run(g, p, pattern([]string{test}), endless, math.MaxInt64); r.how != passed {
		return nil, fmt.Errorf("%s by itself, with copies of functions:\n%s", test, r.output)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	places := map[int]bool{}
	for _, line := range strings.Fields(string(text)) {
		place, err := strconv.Atoi(line)
		if err != nil {
			return nil, err
		}
		places[place] = true
	}
	return places, nil
}

// at returns those of a layer's tests that come to the function of m, or all if
// that is not known: what varies may come there another time.
func (c *campaign) at(m *mutant, b *baseline, tests []string) []string {
	d, _ := m.scope.(*ast.FuncDecl) // or a constant
	place, ok := c.together.places[d]
	if !ok || b.reach == nil {
		return slices.Clone(tests)
	}
	there := slices.DeleteFunc(slices.Clone(tests), func(test string) bool { return !b.reach[test][place] })
	if b.varies && len(there) == 0 {
		return slices.Clone(tests)
	}
	return there
}
