package keyset

import (
	"context"
	"errors"
	"maps"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// issuers stands in for the network.
type issuers struct {
	mu      sync.Mutex
	keys    Keys
	down    bool
	takes   time.Duration
	fetches int
}

var errDown = errors.New("connection refused")

func (s *issuers) fetch(ctx context.Context, issuer string) (Keys, error) {
	s.mu.Lock()
	s.fetches++
	keys, down, takes := maps.Clone(s.keys), s.down, s.takes
	s.mu.Unlock()
	if keys == nil {
		panic("no answer is prepared")
	}
	select {
	case <-time.After(takes):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if down {
		return nil, errDown
	}
	return keys, nil
}

func (s *issuers) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func (s *issuers) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fetches
}

// both runs a test in a bubble with each set.
func both(t *testing.T, f func(t *testing.T, s *issuers, set Set)) {
	for name, make := range map[string]func(Fetch) Set{
		"before": func(f Fetch) Set { return NewBefore(f) },
		"after":  func(f Fetch) Set { return NewAfter(f) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &issuers{keys: Keys{"a": "key a"}, takes: time.Second}
				f(t, s, make(s.fetch))
			})
		})
	}
}

func expect[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// has fails unless a set has a key, and returns how long that took.
func has(t *testing.T, set Set, id string) time.Duration {
	t.Helper()
	began := time.Now()
	key, err := set.Key(t.Context(), "issuer", id)
	if err != nil || key != "key "+id {
		t.Errorf("key %s: %q, %v", id, key, err)
	}
	return time.Since(began)
}

func TestCallersShareAFetch(t *testing.T) {
	both(t, func(t *testing.T, s *issuers, set Set) {
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() { expect(t, "the first wait", has(t, set, "a"), time.Second) })
		}
		all.Wait()
		expect(t, "the second wait", has(t, set, "a"), 0)
		expect(t, "fetches", s.count(), 1)
		_, err := set.Key(t.Context(), "another", "a")
		expect(t, "another issuer", err, nil)
		expect(t, "fetches", s.count(), 2)
	})
}

// A set is refreshed before it is too old, and nobody waits for that.
func TestRefreshesEarly(t *testing.T) {
	both(t, func(t *testing.T, s *issuers, set Set) {
		has(t, set, "a")
		s.change(func() { s.keys["b"] = "key b" })
		time.Sleep(RefreshAfter + time.Second)
		for range 10 {
			expect(t, "the wait", has(t, set, "a"), 0)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		expect(t, "fetches", s.count(), 2)
		expect(t, "the wait for the new key", has(t, set, "b"), 0)
	})
}

// An issuer that is down does not take its keys with it, for a day.
func TestServesStale(t *testing.T) {
	both(t, func(t *testing.T, s *issuers, set Set) {
		has(t, set, "a")
		s.change(func() { s.down = true })
		for range 23 {
			time.Sleep(time.Hour)
			expect(t, "the wait", has(t, set, "a"), 0)
		}
		time.Sleep(2 * time.Hour)
		_, err := set.Key(t.Context(), "issuer", "a")
		expect(t, "a day later", err, errDown)
		s.change(func() { s.down = false })
		has(t, set, "a")
	})
}

// A key that is not there may be new. One that nobody has is looked for now and then.
func TestKeyRotation(t *testing.T) {
	both(t, func(t *testing.T, s *issuers, set Set) {
		has(t, set, "a")
		time.Sleep(fetchPause)
		s.change(func() { s.keys["b"] = "key b" })
		expect(t, "the wait for the new key", has(t, set, "b"), time.Second)
		for range 1000 {
			_, err := set.Key(t.Context(), "issuer", "forged")
			expect(t, "a forged key", err, ErrUnknownKey)
		}
		expect(t, "fetches", s.count(), 2)
	})
}

func TestErrorsAreNotKept(t *testing.T) {
	both(t, func(t *testing.T, s *issuers, set Set) {
		s.change(func() { s.down = true })
		_, err := set.Key(t.Context(), "issuer", "a")
		expect(t, "an issuer that is down", err, errDown)
		s.change(func() { s.down = false })
		has(t, set, "a")
	})
}

// What the first way does wrong.

// either returns what is expected of the first way, or of the second.
func either[T any](set Set, before, after T) T {
	if _, ok := set.(*Before); ok {
		return before
	}
	return after
}

// A caller that leaves takes the fetch with it, and all who wait for that get its error.
func TestFirstCallerLeaves(t *testing.T) {
	both(t, func(t *testing.T, s *issuers, set Set) {
		first, leave := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() { set.Key(first, "issuer", "a") })
		synctest.Wait()
		var failed, had int
		var mu sync.Mutex
		for range 100 {
			all.Go(func() {
				_, err := set.Key(t.Context(), "issuer", "a")
				mu.Lock()
				defer mu.Unlock()
				if errors.Is(err, context.Canceled) {
					failed++
				} else if err == nil {
					had++
				}
			})
		}
		synctest.Wait()
		leave()
		all.Wait()
		expect(t, "callers that got the first one's cancellation", failed, either(set, 100, 0))
		expect(t, "callers that got the key", had, either(set, 0, 100))
		expect(t, "fetches", s.count(), 1)
	})
}

// A fetch that panics never ends its flight, and its issuer's callers wait for ever.
func TestFetchPanics(t *testing.T) {
	both(t, func(t *testing.T, s *issuers, set Set) {
		keys := s.keys
		s.change(func() { s.keys = nil })
		func() {
			defer func() { recover() }()
			set.Key(t.Context(), "issuer", "a")
		}()
		s.change(func() { s.keys = keys })
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		_, err := set.Key(ctx, "issuer", "a")
		expect(t, "the next caller", err, either(set, context.DeadlineExceeded, nil))
	})
}
