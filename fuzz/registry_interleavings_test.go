//go:build modelcheck

package fuzz

import (
	"iter"
	"strings"
	"testing"

	"github.com/latchfree/latchfree/fuzz/internal/interleave"
	"github.com/latchfree/latchfree/internal/model"
	"github.com/latchfree/latchfree/shardedregistry"
)

// FuzzRegistryInterleavings runs threads on a Registry of one shard in every
// order.
func FuzzRegistryInterleavings(f *testing.F) {
	fuzzInterleavings(f, registryProgram(newRegistry))
}

func newRegistry() registry {
	r := shardedregistry.MustNew(shardedregistry.Config[string, int]{Shards: 1, Normalize: lowerCase})
	refs := map[string]registryRef{}
	for _, name := range registryKeys {
		refs[strings.ToUpper(name)] = r.Ref(strings.ToUpper(name))
	}
	return ByRefs(r, refs)
}

func lowerCase(name string) (string, error) { return strings.ToLower(name), nil }

type (
	version       = shardedregistry.Version
	registryEntry = shardedregistry.Entry[string, int]
	registryRef   = shardedregistry.Ref[string, int]
)

// registry is what a Registry does.
type registry interface {
	Create(string, int) (version, error)
	Get(string) (int, bool)
	Lookup(string) (registryEntry, bool)
	Put(string, int) (version, error)
	Update(string, func(int) (int, error)) (registryEntry, error)
	UpdateIf(string, version, int) (version, error)
	Upsert(string, func(int, bool) (int, error)) (registryEntry, error)
	Delete(string) (registryEntry, bool)
	DeleteIf(string, version) error
	DeleteMatching(func(registryEntry) bool) int
	Entries() iter.Seq[registryEntry]
	Len() int
	Snapshot() *shardedregistry.Snapshot[string, int]
}

// registryKeys share the only shard, and with it the version from which new
// keys go on.
var registryKeys = [...]string{"backup", "drain"}

// sharedRegistry is a registry, which version of each key every thread has seen
// last, and which snapshots it has taken.
type sharedRegistry struct {
	registry
	seen  [4][len(registryKeys)]version
	taken [4][]takenSnapshot
}

type takenSnapshot struct {
	*shardedregistry.Snapshot[string, int]
	then string
}

// registryModel has a model for each key.
type registryModel struct {
	keys  [len(registryKeys)]*model.Registry
	floor version // at least every version of every deleted key
}

func newRegistryModel() *registryModel {
	return &registryModel{keys: [...]*model.Registry{model.NewRegistry(), model.NewRegistry()}}
}

// get returns what the model holds for a key.
func (s *registryModel) get(key int) (registryEntry, bool) {
	e, ok := s.keys[key].Live[registryKeys[key]]
	if !ok {
		return registryEntry{}, false
	}
	return registryEntry{Key: registryKeys[key], Value: e.Value, Version: version(e.Version)}, true
}

// put puts a value to which the registry has given the version got. A key that
// is made anew goes on from its own past, or from that of the other key, of
// which it need not know at once.
func (s *registryModel) put(key int, name string, value int, got version) registryEntry {
	_, present := s.get(key)
	e := s.keys[key].Put(registryKeys[key], name, value)
	if !present && version(e.Version) < got && got <= s.floor+1 {
		e.Version = int(got)
		s.keys[key].Live[registryKeys[key]] = e
	}
	now, _ := s.get(key)
	return now
}

// remove removes a key, if it is there, and returns what it held.
func (s *registryModel) remove(key int) (registryEntry, bool) {
	e, ok := s.get(key)
	if ok {
		s.keys[key].DeleteIf(registryKeys[key], int(e.Version))
		s.floor = max(s.floor, e.Version+1)
	}
	return e, ok
}

type (
	registryCaller = interleave.Caller[*sharedRegistry, *registryModel]
	registryOp     = interleave.Op[*sharedRegistry, *registryModel]
)

func registryProgram(fresh func() registry) decoder[*sharedRegistry, *registryModel] {
	return func(program []byte) (interleave.Program[*sharedRegistry, *registryModel], bool) {
		p, ok := interleave.Decode(program, decodeRegistry)
		p.New = func() *sharedRegistry { return &sharedRegistry{registry: fresh()} }
		p.Model = newRegistryModel
		p.After = []registryOp{registryLoop, registryQuietLen, registryDelete(0, "backup"),
			registryCreate(0, "backup", 99), registryLookup(1, "drain"), registryQuietLen, registrySnapsStay}
		return p, ok
	}
}

func decodeRegistry(code interleave.Code, id int, inside func() (registryOp, bool)) registryOp {
	key := int(code.Arg) % len(registryKeys)
	name := registryKeys[key]
	if code.Arg/2%2 == 1 {
		name = strings.ToUpper(name)
	}
	off := [...]int{0, 0, -1, 1}[code.Arg/64]
	switch code.Op % 14 {
	case 0, 1:
		return registryCreate(key, name, id)
	case 2:
		return registryGet(key, name)
	case 3:
		return registryLookup(key, name)
	case 4:
		return registryPut(key, name, id)
	case 5, 6:
		return registryChange(key, name, id, code.Op%14 == 6, code.Arg/4%8, inside)
	case 7:
		return registryUpdateIf(key, name, off, id)
	case 8, 9:
		return registryDelete(key, name)
	case 10:
		return registryDeleteIf(key, name, off)
	case 11:
		return [...]registryOp{registryLoop, registryLen}[code.Arg%2]
	case 12:
		return registrySnap
	default:
		return registryDeleteMatching(key)
	}
}
