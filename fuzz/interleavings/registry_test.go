//go:build modelcheck

package interleavings

import (
	"strings"
	"testing"

	"github.com/latchfree/latchfree/fuzz/internal/adapt"
	"github.com/latchfree/latchfree/fuzz/internal/interleave"
	model "github.com/latchfree/latchfree/internal/tools/model/shardedregistry"
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
	return adapt.ByRefs(r, refs)
}

func lowerCase(name string) (string, error) { return strings.ToLower(name), nil }

type (
	version       = shardedregistry.Version
	registryEntry = shardedregistry.Entry[string, int]
	registryRef   = shardedregistry.Ref[string, int]
)

// registryOps is what both a registry and its model can do.
type registryOps = model.RegistryOps

// registry is what a Registry does.
type registry interface {
	registryOps
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

// newRegistryModel returns one whose keys know of their own past only. That of
// the other key reaches a key at some moment; see registryWrite.
func newRegistryModel() *model.Registry {
	return model.NewRegistry(model.RegistryConfig{Normalize: lowerCase})
}

type (
	registryCaller = interleave.Caller[*sharedRegistry, *model.Registry]
	registryOp     = interleave.Op[*sharedRegistry, *model.Registry]
)

func registryProgram(fresh func() registry) decoder[*sharedRegistry, *model.Registry] {
	return func(program []byte) (interleave.Program[*sharedRegistry, *model.Registry], bool) {
		p, ok := interleave.Decode(program, decodeRegistry)
		p.New = func() *sharedRegistry { return &sharedRegistry{registry: fresh()} }
		p.Model = newRegistryModel
		p.After = []registryOp{registryLoop, registryQuietLen, registryDelete("backup"),
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
	if code.Op >= firstComputeOp {
		return registryCompute(key, name, id, shardedregistry.ComputeOp(code.Arg/4%3))
	}
	switch code.Op % 14 {
	case 0, 1:
		return registryCreate(key, name, id)
	case 2:
		return registryGet(name)
	case 3:
		return registryLookup(key, name)
	case 4:
		return registryPut(key, name, id)
	case 5, 6:
		return registryChange(key, name, id, code.Op%14 == 6, code.Arg/4%8, inside)
	case 7:
		return registryUpdateIf(key, name, off, id)
	case 8, 9:
		return registryDelete(name)
	case 10:
		return registryDeleteIf(key, name, off)
	case 11:
		return [...]registryOp{registryLoop, registryLen}[code.Arg%2]
	case 12:
		return registrySnap
	default:
		return registryDeleteFunc(key)
	}
}
