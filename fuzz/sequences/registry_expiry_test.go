package sequences

import (
	"context"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	model "github.com/latchfree/latchfree/internal/tools/model/shardedregistry"
	"github.com/latchfree/latchfree/shardedregistry"
)

// expiryLives are times to live, by the value.
var expiryLives = []time.Duration{
	math.MaxInt64, 0, -1, 1, time.Millisecond, 1500 * time.Microsecond, 3 * time.Millisecond, 10 * time.Millisecond, time.Hour,
	math.MaxInt64 - 1, math.MinInt64, 1,
}

func expiryLife(_ string, v int) time.Duration { return expiryLives[v%len(expiryLives)] }

// expiryRun is an indexRun in which time passes.
type expiryRun struct {
	transactRun
	mu   sync.Mutex             // guards told: a timer wakes the loop after comparisons
	told map[string]model.Event // what a loop over Watch has told last
}

// FuzzRegistryExpiry reads three bytes for each operation, as FuzzRegistryTransact does, for a
// registry with Config.TTL. Some operations renew a version, or let time pass. Then what is
// there is what the model says, and a loop over Watch has told the last change of each key.
func FuzzRegistryExpiry(f *testing.F) {
	// Renewed in time, and too late; replaced by what lives longer and shorter; deleted and created.
	f.Add([]byte{0x01, 0, 4, 0xa0, 0, 6, 0xb0, 0, 1, 0xb0, 0, 2, 0xa0, 0, 6, 0x00, 0, 4, 0xb0, 0, 9})
	f.Add([]byte{0x01, 0, 4, 0x01, 0, 8, 0xb0, 0, 1, 0x01, 0, 5, 0xb0, 0, 2, 0x01, 0, 3, 0xb0, 0, 0})
	f.Add([]byte{0x01, 0, 7, 0x05, 0, 0, 0x00, 0, 4, 0xb0, 0, 1, 0x07, 0, 0, 0xb0, 0, 9, 0x82, 1, 4, 0x84, 0, 0, 0xb0, 0, 2})
	f.Add([]byte{0x01, 0, 0, 0xa0, 0, 1, 0x01, 1, 1, 0xa8, 0, 8, 0x01, 2, 9, 0xb0, 0, 40})
	// What overtakes a transaction expires at once; the transaction reads that key later, has
	// read it, or stores it, also for no time.
	f.Add([]byte{0x01, 1, 4, 0x81, 1, 0, 0x85, 0, 2, 0x81, 0, 0, 0x82, 2, 4, 0x84, 0, 0})
	f.Add([]byte{0x01, 0, 4, 0x81, 0, 0, 0x85, 0, 2, 0x82, 1, 4, 0x81, 2, 0, 0x84, 0, 0, 0x81, 0, 0, 0x85, 0, 2, 0x83, 0, 0, 0x84, 0, 0})
	f.Add([]byte{0x82, 0, 4, 0x85, 0, 2, 0x82, 1, 2, 0x84, 0, 0, 0x82, 0, 2, 0x85, 0, 1, 0x84, 0, 0, 0x07, 0, 0, 0xb0, 0, 9})
	f.Fuzz(func(t *testing.T, ops []byte) {
		if len(ops) > 300 {
			return // longer ones find nothing that these do not
		}
		for _, n := range []int{0, 16} {
			synctest.Test(t, func(t *testing.T) { expiryOps(t, ops, n) })
		}
	})
}

func expiryOps(t *testing.T, ops []byte, history int) {
	config := indexedConfig
	config.History, config.TTL = history, expiryLife
	s := expiryRun{
		transactRun: transactRun{indexRun: indexRun{t: t, m: model.NewRegistry(config), r: shardedregistry.MustNew(config)}},
		told:        map[string]model.Event{},
	}
	s.settle = synctest.Wait
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		for e := range s.r.Watch(ctx) {
			s.mu.Lock()
			s.told[e.Key] = e
			s.mu.Unlock()
		}
	}()
	synctest.Wait()
	time.Sleep(time.Nanosecond) // timers fire between the operations, which come at odd times
	s.m.Pass(time.Nanosecond)
	for ; len(ops) >= 3; ops = ops[3:] {
		s.operate(ops[0], indexNames[int(ops[1])%len(indexNames)], int(ops[2]))
		synctest.Wait() // for what expires at once
		s.m.Expire()
		s.compare()
		s.compareTold()
	}
	s.compareTaken()
	cancel()
	synctest.Wait()
}

func (s *expiryRun) operate(op byte, key string, v int) {
	switch {
	case op < 0xa0:
		s.next(op, key, v)
	case op < 0xb0: // Renew
		have, _ := s.m.Lookup(key)
		version, ttl := have.Version+shardedregistry.Version(op>>3&1), expiryLives[v%len(expiryLives)]
		require.Equal(s.t, s.m.Renew(key, version, ttl), s.r.Renew(key, version, ttl))
	default:
		d := time.Duration(v) * time.Millisecond / 2
		s.m.Pass(d)
		time.Sleep(d)
	}
}

// compareTold compares what the loop has told of each key last.
func (s *expiryRun) compareTold() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range indexNames {
		want, changed := s.m.Last(key)
		told, ok := s.told[key]
		require.Equal(s.t, changed, ok)
		require.Equal(s.t, want, told)
	}
}
