//go:build !modelcheck

package oncecache_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchfree/latchfree/oncecache"
)

// A renewal is a caller only while the old value is good. After that it lives as a creation does: it is
// cancelled when all callers have left, and the next caller creates anew.

// hung is a cache of values that live an hour, one of which is being renewed, by a function that
// returns when its context ends.
type hung struct {
	*oncecache.Cache[string, int]
	began time.Time     // when k was set
	ended chan struct{} // is closed when Renew's context has ended
	at    time.Duration // when that was, since began
}

func newHung(settings oncecache.Config[string, int]) *hung {
	h := &hung{ended: make(chan struct{}), began: time.Now()}
	settings.TTLFunc = func(string, int) time.Duration { return time.Hour }
	settings.RenewAhead = 20 * time.Minute
	settings.Renew = func(ctx context.Context, _ string, _ int) (int, error) {
		<-ctx.Done()
		h.at = time.Since(h.began)
		close(h.ended)
		return 0, ctx.Err()
	}
	h.Cache = oncecache.MustNew(settings)
	h.Set("k", 1)
	time.Sleep(45 * time.Minute)
	h.Get("k")
	synctest.Wait()
	return h
}

// wantRunning reports it if Renew's context has ended.
func (h *hung) wantRunning(t *testing.T) {
	t.Helper()
	synctest.Wait()
	select {
	case <-h.ended:
		t.Errorf("the context of Renew ended after %v", h.at)
	default:
	}
}

// wantEnded reports it unless Renew's context ended so long after Set.
func (h *hung) wantEnded(t *testing.T, want time.Duration) {
	t.Helper()
	synctest.Wait()
	select {
	case <-h.ended:
		if late := h.at - want; late < 0 || late > time.Second {
			t.Errorf("the context of Renew ended after %v, want %v", h.at, want)
		}
	default:
		t.Error("the context of Renew has not ended")
	}
}

// wantNext asks for the key with little patience, and wants the value that create makes.
func (h *hung) wantNext(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	v, err := h.GetOrCreateContext(ctx, "k", func(context.Context, string) (int, error) { return 2, nil })
	if v != 2 || err != nil {
		t.Errorf("the next caller gets %d, %v", v, err)
	}
}

// The settings with which a renewal may hang.
var hungSettings = map[string]oncecache.Config[string, int]{
	"plain":             {},
	"Close":             {Close: func(string, int) error { return nil }},
	"CloseBeforeCreate": {Close: func(string, int) error { return nil }, CloseBeforeCreate: true},
	"MaxEntries":        {MaxEntries: 10},
}

func testHung(t *testing.T, f func(t *testing.T, h *hung)) {
	for name, settings := range hungSettings {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHung(settings)
				f(t, h)
				if err := h.Close(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// Nobody asks for the key when its value expires.
func TestHungRenewalEndsWithTheValue(t *testing.T) {
	testHung(t, func(t *testing.T, h *hung) {
		time.Sleep(15*time.Minute - time.Second)
		h.wantRunning(t)
		if v, ok := h.Get("k"); v != 1 || !ok {
			t.Errorf("the key has %d, %t while it is renewed", v, ok)
		}
		time.Sleep(time.Hour)
		h.wantEnded(t, time.Hour)
		h.wantNext(t)
	})
}

// A call of Refresh shares the renewal, and keeps it beyond the end of the value.
func TestHungRenewalEndsWithItsCallers(t *testing.T) {
	testHung(t, func(t *testing.T, h *hung) {
		for _, patience := range []time.Duration{20 * time.Minute, 30 * time.Minute} {
			go func() {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				if v, err := h.Refresh(ctx, "k", anew(func(context.Context, string) (int, error) { return 3, nil })); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("Refresh returns %d, %v", v, err)
				}
			}()
		}
		time.Sleep(29 * time.Minute)
		h.wantRunning(t)
		time.Sleep(10 * time.Minute)
		h.wantEnded(t, 75*time.Minute)
		h.wantNext(t)
	})
}

// A caller that comes after the end of the value, while Refresh keeps the renewal, has it cancelled
// when it is the last to leave.
func TestHungRenewalEndsWithALaterCaller(t *testing.T) {
	testHung(t, func(t *testing.T, h *hung) {
		ctx, cancel := context.WithTimeout(t.Context(), 16*time.Minute)
		defer cancel()
		go h.Refresh(ctx, "k", anew(func(context.Context, string) (int, error) { return 3, nil }))
		time.Sleep(15*time.Minute + 30*time.Second)
		late, leave := context.WithTimeout(t.Context(), time.Minute)
		defer leave()
		if v, err := h.GetOrCreateContext(late, "k", func(context.Context, string) (int, error) { return 4, nil }); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a caller beside the renewal gets %d, %v", v, err)
		}
		h.wantEnded(t, 61*time.Minute+30*time.Second)
		h.wantNext(t)
	})
}

// The old value may leave otherwise.
func TestHungRenewalEndsWithARemovedValue(t *testing.T) {
	for name, remove := range map[string]func(c *oncecache.Cache[string, int]){
		"CompareAndDelete": func(c *oncecache.Cache[string, int]) { oncecache.CompareAndDelete(c, "k", 1) },
		"Discard": func(c *oncecache.Cache[string, int]) {
			l, err := c.Acquire(context.Background(), "k", absent1)
			if err == nil {
				l.Discard()
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHung(hungSettings["MaxEntries"])
				remove(h.Cache)
				h.wantEnded(t, 45*time.Minute)
				h.wantNext(t)
				h.Close(t.Context())
			})
		})
	}
}

func absent1(context.Context, string) (int, error) { return 0, errors.New("absent") }
