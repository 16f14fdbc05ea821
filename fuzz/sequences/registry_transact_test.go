package sequences

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	model "github.com/latchfree/latchfree/internal/tools/model/shardedregistry"
	"github.com/latchfree/latchfree/shardedregistry"
)

// FuzzRegistryTransact reads three bytes for each operation, as FuzzRegistryIndexes does.
// Some are steps of a transaction, which ends at the first that is not. The transaction may
// be overtaken: then the registry is changed when its function runs for the first time, and
// what becomes of both is what one order of them explains; so is what expires at once.
func FuzzRegistryTransact(f *testing.F) {
	// A transfer, an absent key, a rejected value, a value that a key loses, and one overtaken.
	f.Add([]byte{0x01, 0, 1, 0x01, 1, 2, 0x81, 0, 0, 0x82, 0, 2, 0x82, 1, 1, 0x84, 0, 0})
	f.Add([]byte{0x81, 0, 0, 0x82, 1, 9, 0x83, 1, 0, 0x82, 2, 9, 0x84, 0, 0, 0x07, 0, 0})
	f.Add([]byte{0x01, 0, 1, 0x82, 1, 3, 0x82, 0, 250, 0x84, 0, 0, 0x82, 1, 3, 0x82, 0, 251, 0x84, 0, 0})
	f.Add([]byte{0x01, 0, 32, 0x83, 0, 0, 0x82, 1, 32, 0x84, 0, 0, 0x83, 0, 0, 0x84, 0, 0, 0x82, 1, 32, 0x84, 0, 0})
	f.Add([]byte{0x01, 0, 1, 0x81, 0, 0, 0x85, 0, 7, 0x81, 1, 0, 0x82, 2, 5, 0x84, 0, 0})
	f.Add([]byte{0x81, 0, 0, 0x81, 1, 0, 0x86, 0, 7, 0x81, 2, 0, 0x84, 0, 0, 0x07, 0, 0})
	// What overtakes gives a key that was read, and absent, a value that the transaction stores.
	f.Add([]byte{0x01, 3, 1, 0x80, 0, 0, 0x85, 0, 64, 0x82, 3, 64, 0x84, 0, 0})
	f.Fuzz(func(t *testing.T, ops []byte) {
		for _, n := range []int{0, 16} {
			config := indexedConfig
			config.History = n
			run := transactRun{indexRun: indexRun{t: t, m: model.NewRegistry(indexedConfig), r: shardedregistry.MustNew(config)}}
			for rest := ops; len(rest) >= 3; rest = rest[3:] {
				run.next(rest[0], indexNames[int(rest[1])%len(indexNames)], int(rest[2]))
				run.compare()
			}
			run.compareTaken()
		}
	})
}

// transactRun is an indexRun with transactions.
type transactRun struct {
	indexRun
	steps     []transactStep
	overtakes *transactStep // what changes the registry in the first run
	at        int           // before which step
	settle    func()        // waits until all has expired that does at once; nil if nothing does
}

// transactStep is a step of a transaction.
type transactStep struct {
	op    byte
	key   string
	value int
}

func (s *transactRun) next(op byte, key string, value int) {
	if op < 0x80 {
		s.step(op, key, value)
		return
	}
	switch step := (transactStep{op % 8, key, value}); step.op {
	default: // 0 Get, 1 Lookup, 2 Put, 3 Delete
		if len(s.steps) < 20 {
			s.steps = append(s.steps, step)
		}
	case 5, 6: // Put and Delete by another
		s.overtakes, s.at = &step, len(s.steps)
	case 4, 7:
		s.transact(registryEnding(0))
		s.steps, s.overtakes = nil, nil
		if step.op == 7 {
			s.steps = append(s.steps, step)
			s.transact(registryEnding(value) % functionPutsOnce)
			s.steps = nil
		}
	}
}

// do runs the steps of a transaction, and returns what it has seen.
func (s *transactRun) do(tx model.TxOps, before func(i int), ending registryEnding) (seen string, err error) {
	for i, step := range s.steps {
		before(i)
		var result any
		switch step.op {
		case 0:
			result, _ = whether(tx.Get(step.key))
		case 1:
			result, _ = whether(tx.Lookup(step.key))
		case 2:
			result = tx.Put(step.key, step.value)
		case 3:
			result, _ = whether(tx.Delete(step.key))
		}
		seen += fmt.Sprint(result, "; ")
	}
	before(len(s.steps))
	_, err = ending.of(0)
	return seen, err
}

func (e ended) text() string {
	return fmt.Sprint(e.result, " ", e.err, " ", e.panicked, " ", e.returned)
}

// transact runs the steps on both.
func (s *transactRun) transact(ending registryEnding) {
	run := func(r registryOps, change func(i, runs int)) ended {
		return endOf(func() (any, error) {
			seen, runs := "", 0
			err := model.Transact(r, func(tx model.TxOps) error {
				runs++
				var err error
				seen, err = s.do(tx, func(i int) { change(i, runs) }, ending)
				return err
			})
			if errors.Is(err, shardedregistry.ErrNotUnique) {
				err = shardedregistry.ErrNotUnique // of several, any
			}
			return seen, err
		})
	}
	none := func(int, int) {}
	if s.overtakes == nil {
		got := run(s.r, none)
		require.Equal(s.t, run(s.m, none), got)
		return
	}
	change := func(r registryOps) ended {
		return endOf(func() (any, error) {
			if s.overtakes.op == 5 {
				return r.Put(s.overtakes.key, s.overtakes.value)
			}
			return whether(r.Delete(s.overtakes.key))
		})
	}
	settle := func() {
		if s.settle != nil {
			s.settle()
		}
	}
	var other ended
	got := run(s.r, func(i, runs int) {
		if i == s.at && runs == 1 {
			other = change(s.r)
			settle() // so versions do not depend on whether a timer or the transaction comes first
		}
	})
	settle()
	have := overtaking{got, other, s.held(s.r)}
	transacts := func(m *model.Registry, o *overtaking) { o.transacted = run(m, none) }
	changes := func(m *model.Registry, o *overtaking) { o.changed = change(m) }
	expires := func(m *model.Registry, _ *overtaking) { m.Expire() }
	var want []string
	for _, order := range [][]func(*model.Registry, *overtaking){
		{changes, expires, transacts, expires},
		{transacts, changes, expires},
	} {
		m, o := s.m.Copy(), overtaking{}
		for _, happens := range order {
			happens(m, &o)
		}
		if o.held = s.held(m); o.text() == have.text() {
			s.m = m
			return
		}
		want = append(want, o.text())
	}
	s.t.Fatalf("%v overtaken by %v: got %s, want one of\n%s", s.steps, *s.overtakes, have.text(), strings.Join(want, "\n"))
}

// overtaking is what became of a transaction and of the change that overtook it, and what
// the keys hold when all is over.
type overtaking struct {
	transacted, changed ended
	held                string
}

func (o overtaking) text() string {
	return fmt.Sprintf("%s and %s, and then %s", o.transacted.text(), o.changed.text(), o.held)
}

// held returns what each key holds.
func (s *transactRun) held(r registryOps) (all string) {
	for _, key := range indexNames {
		e, ok := r.Lookup(key)
		all += fmt.Sprint(e, ok, "; ")
	}
	return all
}
