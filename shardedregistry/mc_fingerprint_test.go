//go:build modelcheck

package shardedregistry_test

import (
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/latchfree/latchfree/internal/mc"
	"github.com/latchfree/latchfree/shardedregistry"
)

// fingerprinted returns an empty registry of one shard that watches its values.
func fingerprinted() *shardedregistry.Registry[string, int] {
	return shardedregistry.MustNew(shardedregistry.Config[string, int]{Shards: 1, Fingerprint: strconv.Itoa})
}

// No interleaving of operations makes Fingerprint find something: it would
// panic.
func TestFingerprintProtocols(t *testing.T) {
	for _, tt := range []struct {
		name    string
		first   []call
		threads threads
	}{
		{"two update", with7, threads{{update(1)}, {update(2)}}},
		{"update, delete and create", with7, threads{{update(1)}, {remove, create(5)}}},
		{"read, delete and create", with7, threads{{get}, {remove, create(5)}}},
		{"read what is created", empty, threads{{create(1)}, {get}}},
		{"creators", empty, threads{{getOrCreate(1)}, {create(2)}}},
		{"a deleter behind a creator", with7, threads{{remove}, {put(5), remove}}},
		{"a deleter between creators", with7, threads{{remove}, {put(5), remove, create(6)}}},
	} {
		t.Run(tt.name, func(t *testing.T) { protocol(t, fingerprinted, tt.first, tt.threads) })
	}
}

// A value that was changed behind the registry's back is found by who reads it
// next, in every interleaving, unless it is deleted meanwhile.
func TestFingerprintFindsProtocol(t *testing.T) {
	cfg := mc.Config{Operations: "Create, change behind its back, Get ∥ Delete"}
	mc.Check(t, cfg, func(m *mc.M) {
		var changed atomic.Bool // in place of the value's fields, whose change would be a data race
		r := shardedregistry.MustNew(shardedregistry.Config[string, int]{Shards: 1, Fingerprint: func(v int) string {
			return fmt.Sprint(v, changed.Load())
		}})
		var found [2]bool
		watch := func(i int, do func()) {
			defer func() {
				why := recover()
				text, _ := why.(string)
				if found[i] = strings.Contains(text, "behind the registry's back"); why != nil && !found[i] {
					m.Failf("a panic that says %v", why)
				}
			}()
			do()
		}
		m.Go(func() {
			r.Create("a", 1)
			changed.Store(true)
			watch(0, func() { r.Get("a") })
		})
		m.Go(func() { watch(1, func() { r.Delete("a") }) })
		m.Final(func() {
			if shardedregistry.Linked(r) == 1 && !found[0] {
				m.Failf("the change was not found")
			}
		})
	})
}

// Who is late, a reader or a deleter of a life that is over, does not replace or
// remove the fingerprint of the next one: what is changed of that is found.
func TestFingerprintOfANextLifeProtocol(t *testing.T) {
	for name, late := range map[string]func(*shardedregistry.Registry[string, int]){
		"Get":    func(r *shardedregistry.Registry[string, int]) { r.Get("a") },
		"Delete": func(r *shardedregistry.Registry[string, int]) { r.Delete("a") },
	} {
		t.Run(name, func(t *testing.T) {
			mc.Check(t, mc.Config{Operations: name + " ∥ Delete, Create, and then a change behind its back"}, func(m *mc.M) {
				var changed atomic.Bool
				r := shardedregistry.MustNew(shardedregistry.Config[string, int]{Shards: 1, Fingerprint: func(v int) string {
					return fmt.Sprint(v, changed.Load())
				}})
				r.Put("a", 1)
				m.Go(func() { late(r) })
				m.Go(func() {
					r.Delete("a")
					r.Create("a", 2)
				})
				m.Final(func() {
					if shardedregistry.Linked(r) == 0 {
						return // it was Delete that came last
					}
					defer func() {
						if recover() == nil {
							m.Failf("the change was not found")
						}
					}()
					changed.Store(true)
					r.Get("a")
				})
			})
		})
	}
}
