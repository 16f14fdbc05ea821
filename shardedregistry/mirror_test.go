//go:build !modelcheck

package shardedregistry_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/latchfree/latchfree/shardedregistry"
)

type versioned = shardedregistry.Versioned[[]string]

// A Mirror shows what its registry has, with the versions of the values, whatever settings
// the registry has.
func TestMirror(t *testing.T) {
	lower := func(k string) (string, error) {
		if k == "" {
			return "", errors.New("empty")
		}
		return strings.ToLower(k), nil
	}
	for name, config := range map[string]shardedregistry.Config[string, versioned]{
		"plain":      {},
		"normalises": {Normalize: lower},
		"expires":    {TTL: func(string, versioned) time.Duration { return time.Hour }},
		"indexed":    {Indexes: map[string]func(string, versioned) []string{"all": func(string, versioned) []string { return nil }}},
		"history":    {History: 2},
	} {
		t.Run(name, func(t *testing.T) {
			r := shardedregistry.MustNew(config)
			m := shardedregistry.MirrorOf(r)
			keys := []string{"", "a", "A", "b", "c"}
			var snapshots []*shardedregistry.Snapshot[string, versioned] // so that records become dated
			rng := rand.New(rand.NewPCG(1, 2))
			for n := range 2000 {
				key := keys[rng.IntN(len(keys))]
				switch rng.IntN(6) {
				case 0, 1, 2:
					r.Put(key, versioned{[]string{key, strings.Repeat("x", n%3)}, shardedregistry.Version(n + 1), int64(-n)})
				case 3, 4:
					r.Delete(key)
				case 5:
					snapshots = append(snapshots, r.Snapshot())
				}
				for _, k := range keys {
					want, ok := r.Lookup(k)
					value, found := m.Get(k)
					if found != ok || !slices.Equal(value, want.Value.Value) {
						t.Fatalf("Get(%q) = %v, %t, want %v, %t", k, value, found, want.Value, ok)
					}
					e, found := m.Lookup(k)
					if found != ok || e.Key != want.Key || e.Version != want.Value.Version || !slices.Equal(e.Value, want.Value.Value) {
						t.Fatalf("Lookup(%q) = %v, %t, want %v, %t", k, e, found, want, ok)
					}
				}
			}
			if len(snapshots) == 0 {
				t.Error("no snapshots")
			}
		})
	}
}

// A Mirror of a registry that has not been used sees what comes.
func TestMirrorOfTheZeroRegistry(t *testing.T) {
	var r shardedregistry.Registry[string, versioned]
	m := shardedregistry.MirrorOf(&r)
	if v, ok := m.Get("a"); ok || v != nil {
		t.Errorf("Get = %v, %t", v, ok)
	}
	if e, ok := m.Lookup("a"); ok || e.Key != "" {
		t.Errorf("Lookup = %v, %t", e, ok)
	}
	mustPut(t, &r, "a", versioned{Value: []string{"x"}, Version: 7})
	if e, ok := m.Lookup("a"); !ok || e.Version != 7 || e.Value[0] != "x" {
		t.Errorf("Lookup = %v, %t", e, ok)
	}
}
