//go:build modelcheck

package shardedregistry_test

import (
	"context"
	"strings"
	"testing"

	"github.com/latchfree/latchfree/internal/mc"
	"github.com/latchfree/latchfree/shardedregistry"
)

// The zero value makes its tables once, whoever comes first.
func TestFirstUseProtocols(t *testing.T) {
	for name, threads := range map[string]threads{
		"creators":                {{create(1)}, {create(2)}},
		"readers":                 {{create(1), remove}, {get, entries}},
		"peeks":                   {{create(1), remove}, {peek, peek}},
		"deleter":                 {{put(1)}, {remove, remove}},
		"deleter of what matches": {{create(1)}, {matching(10)}},
	} {
		t.Run(name, func(t *testing.T) {
			protocol(t, func() *shardedregistry.Registry[string, int] {
				return new(shardedregistry.Registry[string, int])
			}, empty, threads)
		})
	}
}

// What needs no tables may come while they are made.
func TestFirstLookProtocols(t *testing.T) {
	// Misused returns 0 if do panics as it does of a registry that has begun.
	misused := func(says string, do func()) (found int) {
		defer func() {
			if text, _ := recover().(string); !strings.Contains(text, says) {
				found = -1
			}
		}()
		do()
		return -1
	}
	for _, tt := range []struct {
		name string
		look func(*names) int // 0 or 1
	}{
		{"Len", (*names).Len},
		{"Snapshot", func(r *names) int { return r.Snapshot().Len() }},
		{"DeleteFunc", func(r *names) int { return r.DeleteFunc(func(string, int) bool { return true }) }},
		{"ByIndex", func(r *names) int {
			return misused("not in Config", func() { r.ByIndex("none", "value") })
		}},
		{"WatchFrom", func(r *names) int {
			return misused("without Config.History", func() { r.WatchFrom(context.Background(), 0) })
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			mc.Check(t, mc.Config{Operations: "Create ∥ " + tt.name}, func(m *mc.M) {
				var r names
				m.Go(func() { r.Create("a", 7) })
				m.Go(func() {
					if n := tt.look(&r); n != 0 && n != 1 {
						m.Failf("%s has found %d", tt.name, n)
					}
				})
			})
		})
	}
}
