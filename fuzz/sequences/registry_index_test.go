package sequences

import (
	"errors"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/fuzz/internal/adapt"
	model "github.com/latchfree/latchfree/internal/tools/model/shardedregistry"
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

type indexFunctions = map[string]func(string, int) []string

// indexedConfig is that of the registry and of its model.
var indexedConfig = shardedregistry.Config[string, int]{
	Shards:        1,
	Check:         checkValue,
	Indexes:       indexFunctions{"owner": ownerOf, "tag": leavingTags},
	UniqueIndexes: indexFunctions{"slot": slotsOf},
}

// indexRun is a sequence of operations on a registry with indexes and its model.
type indexRun struct {
	t     *testing.T
	r     *shardedregistry.Registry[string, int]
	m     *model.Registry
	taken []*shardedregistry.Snapshot[string, int]
	want  []*model.Registry
}

// FuzzRegistryIndexes reads three bytes for each operation: which, the key, and
// the value. After each, every way to ask an index must answer as the model.
func FuzzRegistryIndexes(f *testing.F) {
	f.Fuzz(func(t *testing.T, ops []byte) {
		run := indexRun{t: t, m: model.NewRegistry(indexedConfig), r: shardedregistry.MustNew(indexedConfig)}
		for ; len(ops) >= 3; ops = ops[3:] {
			run.step(ops[0], indexNames[int(ops[1])%len(indexNames)], int(ops[2]))
			run.compare()
		}
		run.compareTaken()
	})
}

// step runs one operation on both and compares the results. An operation that
// wants a version is given the right one if its byte is below 128.
func (s *indexRun) step(op byte, key string, v int) {
	have, present := s.m.Lookup(key)
	version := have.Version + shardedregistry.Version(op/128)
	var do func(r registryOps) (any, error)
	switch op % 8 {
	case 0:
		do = func(r registryOps) (any, error) { return r.Create(key, v) }
	case 1:
		do = func(r registryOps) (any, error) { return r.Put(key, v) }
	case 2:
		do = func(r registryOps) (any, error) {
			return r.Update(key, func(old int) (int, error) {
				require.Equal(s.t, have.Value, old)
				return v, nil
			})
		}
	case 3:
		do = func(r registryOps) (any, error) {
			return adapt.CreateOrUpdate(r, key, func(old int, exists bool) (int, error) {
				require.Equal(s.t, have.Value, old)
				require.Equal(s.t, present, exists)
				return v, nil
			})
		}
	case 4:
		do = func(r registryOps) (any, error) { return r.UpdateIf(key, version, v) }
	case 5:
		do = func(r registryOps) (any, error) { return whether(r.Delete(key)) }
	case 6:
		do = func(r registryOps) (any, error) { return nil, r.DeleteIf(key, version) }
	case 7:
		s.taken, s.want = append(s.taken, s.r.Snapshot()), append(s.want, s.m.Copy())
		return
	}
	got := endOf(func() (any, error) { return do(s.r) })
	require.Equal(s.t, endOf(func() (any, error) { return do(s.m) }), got)
}

// compareEntries compares what loops yield in whatever order.
func (s *indexRun) compareEntries(want, got iter.Seq[shardedregistry.Entry[string, int]]) {
	require.ElementsMatch(s.t, slices.Collect(want), slices.Collect(got))
}

// compareTaken compares what the snapshots contain in the end.
func (s *indexRun) compareTaken() {
	for i, taken := range s.taken {
		s.compareEntries(s.want[i].Entries(), taken.Entries())
	}
}

// compare asks for every value of every index, and for some that nobody has.
func (s *indexRun) compare() {
	require.Equal(s.t, s.m.Len(), s.r.Len())
	for index, all := range map[string][]string{
		"owner": {"a", "b", "c", "d", ""},
		"tag":   {"x", "b", "r", "d", "v", "X"},
		"slot":  {"7", "8", "9", "10"},
	} {
		for _, value := range all {
			s.compareEntries(s.m.ByIndex(index, value), s.r.ByIndex(index, value))
			if index == "slot" {
				want, present := s.m.LookupBy(index, value)
				e, ok := s.r.LookupBy(index, value)
				require.Equal(s.t, present, ok)
				require.Equal(s.t, want, e)
			}
		}
		require.Equal(s.t, slices.Collect(s.m.IndexValues(index)), slices.Sorted(s.r.IndexValues(index)))
	}
}
