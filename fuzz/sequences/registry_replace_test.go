package sequences

import (
	"fmt"
	"iter"
	"testing"

	"github.com/stretchr/testify/require"

	model "github.com/latchfree/latchfree/internal/tools/model/shardedregistry"
	"github.com/latchfree/latchfree/shardedregistry"
)

// FuzzRegistryReplace reads three bytes for each operation, as FuzzRegistryIndexes does. Some
// are keys and values that the next Replace gets.
func FuzzRegistryReplace(f *testing.F) {
	// A key that stays, one that goes, one that comes; a value twice; one of another key; a
	// rejected one; a key twice; nothing; and an iterator that panics.
	f.Add([]byte{0x01, 0, 1, 0x01, 1, 2, 0x80, 1, 3, 0x80, 2, 4, 0x81, 0, 0, 0x07, 0, 0, 0x82, 0, 0})
	f.Add([]byte{0x80, 0, 32, 0x80, 1, 32, 0x81, 0, 0, 0x80, 0, 32, 0x81, 0, 0, 0x80, 0, 32, 0x81, 0, 0})
	f.Add([]byte{0x01, 0, 32, 0x80, 1, 32, 0x80, 0, 64, 0x81, 0, 0, 0x82, 0, 0, 0x80, 1, 32, 0x81, 0, 0})
	f.Add([]byte{0x01, 0, 1, 0x80, 1, 3, 0x80, 0, 250, 0x81, 0, 0, 0x80, 0, 251, 0x81, 0, 0, 0x80, 0, 252, 0x81, 0, 0})
	f.Add([]byte{0x80, 0, 1, 0x80, 1, 2, 0x80, 0, 3, 0x81, 0, 0, 0x81, 0, 0, 0x01, 0, 1, 0x05, 0, 0, 0x80, 0, 9, 0x81, 0, 0})
	f.Add([]byte{0x01, 0, 1, 0x80, 0, 2, 0x81, 0, 2, 0x80, 0, 2, 0x81, 0, 3, 0x82, 0, 0})
	// With equal: a key that is the same, one that is not, one that comes and one that goes.
	f.Add([]byte{0x01, 0, 1, 0x01, 1, 2, 0x01, 2, 4, 0x80, 0, 3, 0x80, 1, 40, 0x80, 3, 5, 0x83, 0, 0, 0x83, 0, 0})
	f.Fuzz(func(t *testing.T, ops []byte) {
		for _, n := range []int{0, 16} {
			config := indexedConfig
			config.History = n
			run := replaceRun{indexRun: indexRun{t: t, m: model.NewRegistry(indexedConfig), r: shardedregistry.MustNew(config)}}
			for rest := ops; len(rest) >= 3; rest = rest[3:] {
				run.next(rest[0], indexNames[int(rest[1])%len(indexNames)], int(rest[2]))
				run.compare()
			}
			run.compareTaken()
		}
	})
}

// replaceRun is an indexRun with Clear and Replace.
type replaceRun struct {
	indexRun
	pending []shardedregistry.Entry[string, int]
}

func (s *replaceRun) next(op byte, key string, value int) {
	if op < 0x80 {
		s.step(op, key, value)
		return
	}
	switch op % 4 {
	case 0:
		if len(s.pending) < 20 {
			s.pending = append(s.pending, shardedregistry.Entry[string, int]{Key: key, Value: value})
		}
	case 2:
		s.both(func(r model.ReplaceOps) (any, error) { return r.Clear(), nil })
	default:
		entries := s.entries(registryEnding(value) % functionPutsOnce)
		var equal func(a, b int) bool
		if op%4 == 3 {
			equal = func(a, b int) bool { return a/8 == b/8 }
		}
		s.both(func(r model.ReplaceOps) (any, error) { return nil, r.Replace(entries, equal) })
		s.pending = nil
	}
}

// entries yields what is pending, and then ends as a function does; an error is none of its.
func (s *replaceRun) entries(ending registryEnding) iter.Seq2[string, int] {
	return func(yield func(string, int) bool) {
		for _, e := range s.pending {
			if !yield(e.Key, e.Value) {
				return
			}
		}
		_, _ = ending.of(0)
	}
}

// both compares what an operation does to the registry and to the model.
func (s *replaceRun) both(do func(model.ReplaceOps) (any, error)) {
	end := func(r model.ReplaceOps) ended {
		e := endOf(func() (any, error) {
			result, err := do(r)
			return fmt.Sprint(result), err
		})
		if e.err != nil {
			e.result, e.err = fmt.Sprint(e.result, ": ", e.err), nil
		}
		return e
	}
	want := end(s.m)
	require.Equal(s.t, want, end(s.r))
}
