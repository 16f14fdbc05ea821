package fuzz

import (
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/internal/model"
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

// registryEnding is what a function given to Update or Upsert does.
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

// registryRun is a sequence of operations on a registry and its model.
type registryRun struct {
	t     *testing.T
	r     wholeRegistry
	m     *model.Registry
	value int // of the next write: all are different

	snapshots []registrySnapshot // every one that was taken
}

// registrySnapshot is a snapshot and what it should contain, for ever.
type registrySnapshot struct {
	got  wholeSnapshot
	want map[string]model.Entity
}

// FuzzRegistryOps reads three bytes for each operation: which, the key, and an
// argument. The same is done to a plain registry; through Refs, one for each
// spelling; to a registry that clones its values and watches over them; and in a
// namespace, beside one with the same keys that stays as it is.
func FuzzRegistryOps(f *testing.F) {
	f.Fuzz(func(t *testing.T, ops []byte) {
		config := shardedregistry.Config[string, int]{Shards: 1, Normalize: normalizeName}
		plain := shardedregistry.MustNew(config)
		runRegistry(t, ByRefs(plain, nil), ops)

		behind, refs := shardedregistry.MustNew(config), map[string]shardedregistry.Ref[string, int]{}
		for _, name := range registryNames {
			refs[name] = behind.Ref(name)
		}
		runRegistry(t, ByRefs(behind, refs), ops)

		config.Clone = func(v int) int { return v }
		config.Fingerprint = strconv.Itoa
		runRegistry(t, ByRefs(shardedregistry.MustNew(config), nil), ops)

		divided := shardedregistry.MustNew(shardedregistry.Config[scopedKey, int]{Shards: 1, Normalize: normalizeScoped})
		beside := shardedregistry.Namespace(divided, "beside")
		for _, name := range registryNames[:6] {
			_, err := beside.Put(name, -1)
			require.NoError(t, err)
		}
		runRegistry(t, viewed{shardedregistry.Namespace(divided, "plans")}, ops)
		require.Equal(t, 3, beside.Len())
		for e := range beside.Entries() {
			require.EqualValues(t, -1, e.Value)
			require.EqualValues(t, 2, e.Version)
		}
	})
}

func runRegistry(t *testing.T, r wholeRegistry, ops []byte) {
	run := registryRun{t: t, r: r, m: model.NewRegistry()}
	for ; len(ops) >= 3; ops = ops[3:] {
		run.step(ops[0], registryNames[int(ops[1])%len(registryNames)], ops[2])
	}
	run.compareAll()
	for _, taken := range run.snapshots {
		run.compareSnapshot(taken)
	}
}

// step runs one operation on both and compares the results.
func (s *registryRun) step(op byte, name string, arg byte) {
	s.value++
	key, bad := normalizeName(name)
	have, present := s.m.Live[key]
	// The version given to UpdateIf and DeleteIf: the right one, or one beside it.
	version := have.Version + int(arg%3) - 1
	switch op % 14 {
	case 0:
		v, err := s.r.Create(name, s.value)
		if s.rejected(bad, err) {
			return
		}
		e, out := s.m.Create(key, name, s.value)
		if s.same(out, err); out == model.Done {
			require.EqualValues(s.t, e.Version, v)
			return
		}
		want := shardedregistry.ExistsError{Given: name, Stored: e.Spelled, Version: shardedregistry.Version(e.Version)}
		require.Equal(s.t, &want, err)
	case 1:
		v, ok := s.r.Get(name)
		require.Equal(s.t, present, ok)
		require.Equal(s.t, have.Value, v)
	case 2:
		e, ok := s.r.Lookup(name)
		require.Equal(s.t, present, ok)
		require.Equal(s.t, s.entry(key, have), e)
	case 3:
		s.change(name, registryEnding(arg)%registryEndings, false)
	case 4:
		v, err := s.r.UpdateIf(name, shardedregistry.Version(version), s.value)
		if s.rejected(bad, err) {
			return
		}
		e, out := s.m.PutIf(key, version, s.value)
		if s.same(out, err); out == model.Done {
			require.EqualValues(s.t, e.Version, v)
		}
		s.conflict(out, err, e.Version, version)
	case 5:
		v, err := s.r.Put(name, s.value)
		if s.rejected(bad, err) {
			return
		}
		require.NoError(s.t, err)
		require.EqualValues(s.t, s.m.Put(key, name, s.value).Version, v)
	case 6:
		s.change(name, registryEnding(arg)%registryEndings, true)
	case 7:
		e, ok := s.r.Delete(name)
		require.Equal(s.t, present, ok)
		require.Equal(s.t, s.entry(key, have), e)
		s.m.DeleteIf(key, have.Version)
	case 8:
		err := s.r.DeleteIf(name, shardedregistry.Version(version))
		if s.rejected(bad, err) {
			return
		}
		e, out := s.m.DeleteIf(key, version)
		s.same(out, err)
		s.conflict(out, err, e.Version, version)
	case 9:
		s.compareAll()
	case 10:
		taken := registrySnapshot{s.r.snapshot(), s.m.Snapshot()}
		s.compareSnapshot(taken)
		s.snapshots = append(s.snapshots, taken)
	case 11:
		s.getOrCreate(name, registryEnding(arg)%registryEndings)
	case 12:
		s.createMany(int(arg))
	case 13:
		s.deleteMatching(int(arg))
	}
}

// change runs Update or Upsert with a function that ends in the given way, on a
// goroutine of its own, which the function may end.
func (s *registryRun) change(name string, ending registryEnding, upsert bool) {
	type result struct {
		entry    shardedregistry.Entry[string, int]
		err      error
		panicked any
		returned bool
	}
	key, bad := normalizeName(name)
	_, present := s.m.Live[key]
	runs, value := 0, s.value
	fn := func(old int, exists bool) (int, error) {
		runs++
		have, now := s.m.Live[key]
		require.Equal(s.t, now, exists)
		require.Equal(s.t, have.Value, old)
		switch ending {
		case functionFails:
			return value, errFunction
		case functionPanics:
			panic(errFunction)
		case functionExits:
			runtime.Goexit()
		case functionPutsOnce:
			if runs == 1 {
				s.step(5, name, 0)
			}
		case functionDeletes:
			s.step(7, name, 0)
		case functionSnapshots:
			s.step(10, name, 0)
		}
		return value, nil
	}
	var got result
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { got.panicked = recover() }()
		if upsert {
			got.entry, got.err = s.r.Upsert(name, fn)
		} else {
			got.entry, got.err = s.r.Update(name, func(old int) (int, error) { return fn(old, true) })
		}
		got.returned = true
	}()
	<-done
	if bad != nil {
		s.rejected(bad, got.err)
		return
	}
	want := result{returned: true}
	switch {
	case !present && !upsert, ending == functionDeletes && !upsert:
		want.err = shardedregistry.ErrNotFound
	case ending == functionFails:
		want.err = errFunction
	case ending == functionPanics:
		want = result{panicked: errFunction}
	case ending == functionExits:
		want = result{}
	default:
		want.entry = s.entry(key, s.m.Put(key, name, value))
	}
	require.Equal(s.t, want, got)
}

// rejected checks the error for a name that is no key, and reports whether the
// name is none.
func (s *registryRun) rejected(bad, err error) bool {
	if bad != nil {
		require.ErrorIs(s.t, err, shardedregistry.ErrInvalidKey)
		require.ErrorIs(s.t, err, bad)
	}
	return bad != nil
}

// same compares an error with the model's outcome.
func (s *registryRun) same(out model.Outcome, err error) {
	want := map[model.Outcome]error{
		model.Exists:   shardedregistry.ErrExists,
		model.Absent:   shardedregistry.ErrNotFound,
		model.Conflict: shardedregistry.ErrConflict,
	}[out]
	if want == nil {
		require.NoError(s.t, err)
		return
	}
	require.ErrorIs(s.t, err, want)
}

// conflict checks the versions in the error of a conflict.
func (s *registryRun) conflict(out model.Outcome, err error, have, want int) {
	if out == model.Conflict {
		require.Equal(s.t, &shardedregistry.ConflictError{
			Have: shardedregistry.Version(have), Want: shardedregistry.Version(want),
		}, err)
	}
}

// entry is what the registry should return for what the model holds.
func (s *registryRun) entry(key string, e model.Entity) shardedregistry.Entry[string, int] {
	if e.Version == 0 {
		return shardedregistry.Entry[string, int]{}
	}
	return shardedregistry.Entry[string, int]{Key: key, Value: e.Value, Version: shardedregistry.Version(e.Version)}
}

// compareAll compares what loops and Len see.
func (s *registryRun) compareAll() {
	got, want := map[string]string{}, map[string]string{}
	for e := range s.r.Entries() {
		require.NotContains(s.t, got, e.Key)
		got[e.Key] = fmt.Sprint(e.Value, e.Version)
	}
	for k, e := range s.m.Live {
		want[k] = fmt.Sprint(e.Value, e.Version)
	}
	require.Equal(s.t, want, got)
	require.Equal(s.t, len(want), s.r.Len())
	for k, v := range s.r.All() {
		require.Equal(s.t, s.m.Live[k].Value, v)
	}
}

// compareSnapshot compares what a snapshot contains, by every way to read it.
func (s *registryRun) compareSnapshot(taken registrySnapshot) {
	require.Equal(s.t, len(taken.want), taken.got.Len())
	seen := map[string]bool{}
	for e := range taken.got.Entries() {
		require.False(s.t, seen[e.Key])
		seen[e.Key] = true
		require.Equal(s.t, s.entry(e.Key, taken.want[e.Key]), e)
	}
	for k, v := range taken.got.All() {
		require.Equal(s.t, taken.want[k].Value, v)
	}
	for _, name := range registryNames {
		key, _ := normalizeName(name)
		want, present := taken.want[key]
		v, ok := taken.got.Get(name)
		require.Equal(s.t, present, ok)
		require.Equal(s.t, want.Value, v)
		e, ok := taken.got.Lookup(name)
		require.Equal(s.t, present, ok)
		require.Equal(s.t, s.entry(key, want), e)
	}
}
