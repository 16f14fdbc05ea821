//go:build modelcheck

package shardedregistry_test

import (
	"testing"

	"github.com/latchfree/latchfree/internal/mc"
	"github.com/latchfree/latchfree/shardedregistry"
)

// A snapshot finds what a key held, whatever else records have beside their date.
func TestSnapshotOfAllShapes(t *testing.T) {
	digit := indexes{"digit": digits}
	for _, shape := range []struct {
		name   string
		config shardedregistry.Config[string, int]
	}{
		{"terms", shardedregistry.Config[string, int]{Indexes: digit}},
		{"links", shardedregistry.Config[string, int]{History: 1024}},
		{"terms and links", shardedregistry.Config[string, int]{Indexes: digit, History: 1024}},
	} {
		for _, tt := range []struct {
			name    string
			first   []call
			threads threads
		}{
			{"changed", with7, threads{{put(1), other(put(2))}, {snapshot}}},
			{"re-created", with7, threads{{remove, create(5)}, {snapshot}}},
		} {
			t.Run(shape.name+", "+tt.name, func(t *testing.T) {
				snapshotProtocol(t, mc.Config{}, func() registry {
					r := indexed(shape.config)
					for _, c := range tt.first {
						c.Do(r)
					}
					return &joined{Registry: r, taker: shardedregistry.Join(r)}
				}, tt.first, tt.threads, finish, traces)
			})
		}
	}
}

// Two who look for keys in a snapshot for the first time find them.
func TestSnapshotLookups(t *testing.T) {
	mc.Check(t, mc.Config{Operations: "Lookup(a) ∥ Lookup(b), of a snapshot"}, func(m *mc.M) {
		s := twoKeys(both7)().Snapshot()
		for _, k := range []string{"a", "b"} {
			m.Go(func() {
				if e, ok := s.Lookup(k); !ok || e.Key != k || e.Value != 7 {
					m.Failf("%s is %v, %t", k, e, ok)
				}
			})
		}
	})
}
