package fuzz

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/internal/model"
	"github.com/latchfree/latchfree/shardedregistry"
)

// indexNames are four keys.
var indexNames = []string{"backup", "resize", "drain", "verify"}

// Values whose bits say what they are found by, from the lowest: two for the
// owner, three for the tags, three for the slots, which are unique. The highest
// values are those that a function refuses.
const (
	valueIsRefused = 250 + iota
	functionPanicsAt
	functionExitsAt
)

var errByCheck = errors.New("an error of Check")

func checkValue(_ string, v int) error {
	if v == valueIsRefused {
		return errByCheck
	}
	return nil
}

func ownerOf(_ string, v int) []string { return []string{string(rune('a' + v%4))} }

func tagsOf(key string, v int) (tags []string) {
	for i, tag := range []string{"x", key[:1], "x"} { // one may come twice
		if v>>(2+i)&1 != 0 {
			tags = append(tags, tag)
		}
	}
	return tags
}

func slotsOf(_ string, v int) (slots []string) {
	for i := range 3 {
		if v>>(5+i)&1 != 0 {
			slots = append(slots, fmt.Sprint(9-i)) // in no order
		}
	}
	return slots
}

// leavingTags is tagsOf where it may panic or exit.
func leavingTags(key string, v int) []string {
	switch v {
	case functionPanicsAt:
		panic(errFunction)
	case functionExitsAt:
		runtime.Goexit()
	}
	return tagsOf(key, v)
}

// indexRun is a sequence of operations on a registry with indexes and its model.
type indexRun struct {
	t     *testing.T
	r     *shardedregistry.Registry[string, int]
	m     *model.Registry
	rules model.Rules
	taken []*shardedregistry.Snapshot[string, int]
	want  []map[string]model.Entity
}

// FuzzRegistryIndexes reads three bytes for each operation: which, the key, and
// the value. After each, every way to ask an index must answer as the model.
func FuzzRegistryIndexes(f *testing.F) {
	f.Fuzz(func(t *testing.T, ops []byte) {
		type functions = map[string]func(string, int) []string
		run := indexRun{
			t: t, m: model.NewRegistry(),
			r: shardedregistry.MustNew(shardedregistry.Config[string, int]{
				Shards:        1,
				Check:         checkValue,
				Indexes:       functions{"owner": ownerOf, "tag": leavingTags},
				UniqueIndexes: functions{"slot": slotsOf},
			}),
			rules: model.Rules{
				Check:   checkValue,
				Indexes: functions{"owner": ownerOf, "tag": tagsOf, "slot": slotsOf},
				Unique:  map[string]bool{"slot": true},
			},
		}
		for ; len(ops) >= 3; ops = ops[3:] {
			run.step(ops[0], indexNames[int(ops[1])%len(indexNames)], int(ops[2]))
			run.compare()
		}
		for i, s := range run.taken {
			require.Equal(t, len(run.want[i]), s.Len())
			for e := range s.Entries() {
				require.Equal(t, entryOf(e.Key, run.want[i][e.Key]), e)
			}
		}
	})
}

func entryOf(key string, e model.Entity) shardedregistry.Entry[string, int] {
	return shardedregistry.Entry[string, int]{Key: key, Value: e.Value, Version: shardedregistry.Version(e.Version)}
}

// step runs one operation on both and compares the results. An operation that
// wants a version is given the right one if its byte is below 128.
func (s *indexRun) step(op byte, key string, v int) {
	have, present := s.m.Live[key]
	version := have.Version + int(op/128)
	switch op % 8 {
	case 0:
		s.store(key, v, map[bool]error{true: shardedregistry.ErrExists}[present], func() (shardedregistry.Version, error) {
			return s.r.Create(key, v)
		})
	case 1:
		s.store(key, v, nil, func() (shardedregistry.Version, error) { return s.r.Put(key, v) })
	case 2:
		s.store(key, v, map[bool]error{false: shardedregistry.ErrNotFound}[present], func() (shardedregistry.Version, error) {
			e, err := s.r.Update(key, func(old int) (int, error) {
				require.Equal(s.t, have.Value, old)
				return v, nil
			})
			return e.Version, err
		})
	case 3:
		s.store(key, v, nil, func() (shardedregistry.Version, error) {
			e, err := s.r.Upsert(key, func(old int, exists bool) (int, error) {
				require.Equal(s.t, have.Value, old)
				require.Equal(s.t, present, exists)
				return v, nil
			})
			return e.Version, err
		})
	case 4:
		s.store(key, v, s.wants(key, version), func() (shardedregistry.Version, error) {
			return s.r.UpdateIf(key, shardedregistry.Version(version), v)
		})
	case 5:
		e, ok := s.r.Delete(key)
		require.Equal(s.t, present, ok)
		if present {
			require.Equal(s.t, entryOf(key, have), e)
		}
		s.m.DeleteIf(key, have.Version)
	case 6:
		require.ErrorIs(s.t, s.r.DeleteIf(key, shardedregistry.Version(version)), s.wants(key, version))
		s.m.DeleteIf(key, version)
	case 7:
		s.taken, s.want = append(s.taken, s.r.Snapshot()), append(s.want, s.m.Snapshot())
	}
}

// wants returns the error of who wants a version.
func (s *indexRun) wants(key string, version int) error {
	have, present := s.m.Live[key]
	switch {
	case !present:
		return shardedregistry.ErrNotFound
	case have.Version != version:
		return shardedregistry.ErrConflict
	}
	return nil
}

// store runs an operation that stores v for key unless there is an error that
// comes before the rules, on a goroutine of its own, which may end in it.
func (s *indexRun) store(key string, v int, before error, op func() (shardedregistry.Version, error)) {
	type result struct {
		version  shardedregistry.Version
		panicked any
		returned bool
	}
	var got result
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { got.panicked = recover() }()
		got.version, err = op()
		got.returned = true
	}()
	<-done
	want := result{returned: true}
	rival, refused := s.rules.Reject(s.m, key, v)
	switch {
	case before != nil:
		require.ErrorIs(s.t, err, before)
	case refused != nil:
		require.Equal(s.t, refused, err)
	case v == functionPanicsAt:
		want = result{panicked: errFunction}
	case v == functionExitsAt:
		want = result{}
	case rival != nil:
		require.Equal(s.t, &shardedregistry.UniqueError{Index: rival.Index, Value: rival.Value, Key: rival.Key}, err)
		require.ErrorIs(s.t, err, shardedregistry.ErrNotUnique)
	default:
		require.NoError(s.t, err)
		want.version = shardedregistry.Version(s.m.Put(key, key, v).Version)
	}
	require.Equal(s.t, want, got)
}

// compare asks for every value of every index, and for some that nobody has.
func (s *indexRun) compare() {
	require.Equal(s.t, len(s.m.Live), s.r.Len())
	for index, all := range map[string][]string{
		"owner": {"a", "b", "c", "d", ""},
		"tag":   {"x", "b", "r", "d", "v", "X"},
		"slot":  {"7", "8", "9", "10"},
	} {
		for _, value := range all {
			want := s.rules.ByIndex(s.m, index, value)
			var got []string
			for e := range s.r.ByIndex(index, value) {
				require.Equal(s.t, entryOf(e.Key, s.m.Live[e.Key]), e)
				got = append(got, e.Key)
			}
			slices.Sort(got)
			require.Equal(s.t, want, got)
			if s.rules.Unique[index] {
				e, ok := s.r.LookupBy(index, value)
				require.Equal(s.t, len(want) > 0, ok)
				if ok {
					require.Equal(s.t, entryOf(want[0], s.m.Live[want[0]]), e)
				}
			}
		}
		require.Equal(s.t, s.rules.IndexValues(s.m, index), slices.Sorted(s.r.IndexValues(index)))
	}
}
