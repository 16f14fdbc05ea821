package registry

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// freshStorm checks what Fresh promises while a cluster is broken: one goroutine writes
// increasing numbers to a key, and each registry that is fresh must show the last one that
// was acknowledged MaxLag before.
type freshStorm struct {
	workers sync.WaitGroup
	end     context.CancelFunc

	mu    sync.Mutex
	acked []time.Time // of number i; zero if it was not
	fresh []int       // looks of a registry that was
	wrong []string
}

const stormKey = "fresh"

func startFresh(all []*Registry[string, int]) *freshStorm {
	ctx, end := context.WithCancel(context.Background())
	s := &freshStorm{end: end, fresh: make([]int, len(all))}
	s.workers.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			limited, cancel := context.WithTimeout(ctx, time.Second)
			_, err := all[n%len(all)].Put(limited, stormKey, n)
			cancel()
			var now time.Time
			if err == nil {
				now = time.Now()
			}
			s.mu.Lock()
			s.acked = append(s.acked, now)
			s.mu.Unlock()
			time.Sleep(5 * time.Millisecond)
		}
	})
	for i, r := range all {
		s.workers.Go(func() {
			for ctx.Err() == nil {
				s.look(i, r)
				time.Sleep(5 * time.Millisecond)
			}
		})
	}
	return s
}

// look asks registry i once.
func (s *freshStorm) look(i int, r *Registry[string, int]) {
	began := time.Now()
	if r.Fresh() != nil {
		return
	}
	got, ok := r.Get(stormKey)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fresh[i]++
	for n := len(s.acked) - 1; n >= 0 && !(ok && n <= got); n-- {
		if at := s.acked[n]; !at.IsZero() && began.Sub(at) >= r.config.MaxLag {
			s.wrong = append(s.wrong, time.Since(at).String())
			return
		}
	}
}

// wait waits until each registry was fresh.
func (s *freshStorm) wait(t *testing.T) {
	t.Helper()
	eventually(t, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return !slices.Contains(s.fresh, 0)
	}, "fresh")
}

func (s *freshStorm) stop(t *testing.T) {
	t.Helper()
	s.end()
	s.workers.Wait()
	require.Empty(t, s.wrong, "a fresh registry does not show what was acknowledged so long ago")
	for i, n := range s.fresh {
		require.NotZero(t, n, "registry %d was never fresh", i)
	}
	t.Log("fresh:", s.fresh)
}
