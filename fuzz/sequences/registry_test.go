package sequences

import (
	"errors"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/fuzz/internal/adapt"
	model "github.com/latchfree/latchfree/internal/tools/model/shardedregistry"
	"github.com/latchfree/latchfree/shardedregistry"
)

// registryNames are two spellings of each of three keys, and what is no key.
var registryNames = []string{"backup", "Backup", "resize", "RESIZE", "drain", "dRAIN", ""}

var (
	errNoName   = errors.New("a name must not be empty")
	errFunction = errors.New("an error of the function")
)

func normalizeName(name string) (string, error) {
	if name == "" {
		return "", errNoName
	}
	return strings.ToLower(name), nil
}

// namesConfig is that of the registry and of its model.
var namesConfig = shardedregistry.Config[string, int]{Shards: 1, Normalize: normalizeName}

// registryEnding is what a function given to Update or Compute does.
type registryEnding byte

const (
	functionReturns registryEnding = iota
	functionFails
	functionPanics
	functionExits
	functionPutsOnce // puts its own key in its first run
	functionDeletes  // deletes its own key in every run
	functionSnapshots
	registryEndings
)

// registryOps is what both a registry and its model can do.
type registryOps = model.RegistryOps

// registryRun is a sequence of operations on a registry and its model.
type registryRun struct {
	t     *testing.T
	r     adapt.Registry
	m     *model.Registry
	value int // of the next write: all are different

	snapshots []registrySnapshot // every one that was taken
}

// registrySnapshot is a snapshot and what it should contain, for ever.
type registrySnapshot struct {
	got  *shardedregistry.Snapshot[string, int]
	want *model.Registry
}

// FuzzRegistryOps reads three bytes for each operation: which, the key, and an
// argument. The same is done to a plain registry, and to one that is read through Refs,
// one for each spelling.
func FuzzRegistryOps(f *testing.F) {
	f.Fuzz(func(t *testing.T, ops []byte) {
		config := namesConfig
		plain := shardedregistry.MustNew(config)
		runRegistry(t, adapt.ByRefs(plain, nil), ops)

		behind, refs := shardedregistry.MustNew(config), map[string]shardedregistry.Ref[string, int]{}
		for _, name := range registryNames {
			refs[name] = behind.Ref(name)
		}
		runRegistry(t, adapt.ByRefs(behind, refs), ops)
	})
}

// comparePeek compares Peek with Get: they differ in what they copy.
func (s *registryRun) comparePeek(name string) {
	value, present := s.r.Get(name)
	if p := s.r.Peek(name); present {
		require.Equal(s.t, &value, p)
	} else {
		require.Nil(s.t, p)
	}
}

func runRegistry(t *testing.T, r adapt.Registry, ops []byte) {
	run := registryRun{t: t, r: r, m: model.NewRegistry(namesConfig)}
	for ; len(ops) >= 3; ops = ops[3:] {
		run.step(ops[0], registryNames[int(ops[1])%len(registryNames)], ops[2])
	}
	run.compareLoops(run.r, run.m)
	run.compareSaved()
	for _, taken := range run.snapshots {
		run.compareSnapshot(taken)
	}
}

// step runs one operation on both and compares the results.
func (s *registryRun) step(op byte, name string, arg byte) {
	s.value++
	value := s.value
	have, _ := s.m.Lookup(name)
	// The version given to UpdateIf and DeleteIf: the right one, or one beside it.
	version := have.Version + shardedregistry.Version(arg%3) - 1
	if op >= firstRareOp {
		s.rareStep(name, arg)
		return
	}
	switch op % 13 {
	case 0:
		s.both(func(r registryOps) (any, error) { return r.Create(name, value) })
	case 1:
		s.both(func(r registryOps) (any, error) { return whether(r.Get(name)) })
		s.comparePeek(name)
	case 2:
		s.both(func(r registryOps) (any, error) { return whether(r.Lookup(name)) })
	case 3, 6:
		s.change(name, registryEnding(arg)%registryEndings, op%14 == 6)
	case 4:
		s.both(func(r registryOps) (any, error) { return r.UpdateIf(name, version, value) })
	case 5:
		s.both(func(r registryOps) (any, error) { return r.Put(name, value) })
	case 7:
		s.both(func(r registryOps) (any, error) { return whether(r.Delete(name)) })
	case 8:
		s.both(func(r registryOps) (any, error) { return nil, r.DeleteIf(name, version) })
	case 9:
		s.compareLoops(s.r, s.m)
	case 10:
		taken := registrySnapshot{s.r.Snapshot(), s.m.Copy()}
		s.compareSnapshot(taken)
		s.snapshots = append(s.snapshots, taken)
	case 11:
		s.getOrCreate(name, registryEnding(arg)%registryEndings)
	case 12:
		s.deleteFunc(int(arg))
	}
}

func whether[T any](v T, ok bool) (any, error) { return fmt.Sprint(v, ok), nil }

// both compares what an operation does to the registry and to the model.
func (s *registryRun) both(op func(r registryOps) (any, error)) {
	got := endOf(func() (any, error) { return op(s.r) })
	s.same(endOf(func() (any, error) { return op(s.m) }), got)
}

// ended is what became of an operation.
type ended struct {
	result   any
	err      error
	panicked any
	returned bool
}

// endOf runs an operation on a goroutine of its own, which may end in it.
func endOf(op func() (any, error)) (e ended) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { e.panicked = recover() }()
		e.result, e.err = op()
		e.returned = true
	}()
	<-done
	return e
}

// same compares how an operation ended with how it should. The error for a name
// that is no key has a type of its own.
func (s *registryRun) same(want, got ended) {
	if errors.Is(want.err, shardedregistry.ErrInvalidKey) {
		require.ErrorIs(s.t, got.err, shardedregistry.ErrInvalidKey)
		require.ErrorIs(s.t, got.err, errNoName)
		got.err = want.err
	}
	require.Equal(s.t, want, got)
}

// change runs Update or Compute with a function that ends in the given way.
func (s *registryRun) change(name string, ending registryEnding, upsert bool) {
	run, value := 0, s.value
	s.both(func(r registryOps) (any, error) {
		fn := func(old int, exists bool) (int, error) {
			if run++; r != s.m {
				have, present := s.m.Get(name)
				require.Equal(s.t, present, exists)
				require.Equal(s.t, have, old)
				s.callBack(name, ending, run)
			}
			return ending.of(value)
		}
		if upsert {
			return adapt.CreateOrUpdate(r, name, fn)
		}
		return r.Update(name, func(old int) (int, error) { return fn(old, true) })
	})
}

// callBack is what a function does in one of its runs before it ends.
func (s *registryRun) callBack(name string, ending registryEnding, run int) {
	switch {
	case ending == functionPutsOnce && run == 1:
		s.step(5, name, 0)
	case ending == functionDeletes:
		s.step(7, name, 0)
	case ending == functionSnapshots:
		s.step(10, name, 0)
	}
}

// of is how a function that has made a value ends.
func (e registryEnding) of(value int) (int, error) {
	switch e {
	case functionFails:
		return value, errFunction
	case functionPanics:
		panic(errFunction)
	case functionExits:
		runtime.Goexit()
	}
	return value, nil
}

// registryLoops is what registries, snapshots and models can do.
type registryLoops interface {
	All() iter.Seq2[string, int]
	Entries() iter.Seq[shardedregistry.Entry[string, int]]
	Len() int
}

// compareLoops compares what loops and Len see.
func (s *registryRun) compareLoops(r registryLoops, m *model.Registry) {
	entries := slices.SortedFunc(r.Entries(), func(x, y shardedregistry.Entry[string, int]) int { return strings.Compare(x.Key, y.Key) })
	require.Equal(s.t, slices.Collect(m.Entries()), entries)
	require.Equal(s.t, m.Len(), r.Len())
	n := 0
	for k, v := range r.All() {
		want, _ := m.Get(k)
		require.Equal(s.t, want, v)
		n++
	}
	require.Equal(s.t, m.Len(), n)
}

// compareSnapshot compares what a snapshot contains, by every way to read it.
func (s *registryRun) compareSnapshot(taken registrySnapshot) {
	s.compareLoops(taken.got, taken.want)
	for _, name := range registryNames {
		e, ok := taken.want.Lookup(name)
		require.Equal(s.t, fmt.Sprint(e, ok), fmt.Sprint(taken.got.Lookup(name)))
		require.Equal(s.t, fmt.Sprint(e.Value, ok), fmt.Sprint(taken.got.Get(name)))
	}
}
