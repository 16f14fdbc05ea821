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

// made is a value that knows when it was made.
type made struct{ at time.Time }

// source counts its calls, and may be down.
type source struct {
	calls int
	down  bool
}

func (s *source) ask(context.Context, string, made) (made, error) {
	if s.calls++; s.down {
		return made{}, errors.New("source down")
	}
	return made{time.Now()}, nil
}

// A RenewAhead that is shorter than the TTL says when a value is due, however near to the TTL it is.
func TestRenewAheadCounts(t *testing.T) {
	for _, tt := range []struct{ ttl, ahead time.Duration }{
		{24 * time.Hour, 23*time.Hour + 55*time.Minute},
		{time.Hour, 59 * time.Minute},
		{time.Hour, 31 * time.Minute},
		{time.Hour, 30 * time.Minute},
		{time.Hour, time.Minute},
		{time.Minute, time.Minute - time.Millisecond},
		{10 * time.Millisecond, 9 * time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			var s source
			c := oncecache.MustNew(oncecache.Config[string, made]{
				TTLFunc: func(string, made) time.Duration { return tt.ttl }, RenewAhead: tt.ahead, Renew: s.ask,
			})
			c.Set("k", made{time.Now()})
			for n := range 3 {
				before, _ := c.Get("k")
				time.Sleep(tt.ttl - tt.ahead - 1)
				if v, ok := c.Get("k"); v != before || !ok || s.calls != n {
					t.Fatalf("TTL %v, RenewAhead %v: renewed by call %d before it is due", tt.ttl, tt.ahead, s.calls)
				}
				time.Sleep(1)
				synctest.Wait()
				if v, ok := c.Get("k"); v != before || !ok {
					t.Fatalf("TTL %v, RenewAhead %v: the call that finds it due gets %v, %t", tt.ttl, tt.ahead, v, ok)
				}
				synctest.Wait()
				if v, ok := c.Get("k"); !v.at.Equal(time.Now()) || !ok || s.calls != n+1 {
					t.Fatalf("TTL %v, RenewAhead %v: %v old, after %d calls", tt.ttl, tt.ahead, time.Since(v.at), s.calls)
				}
			}
			c.Close(t.Context())
		})
	}
}

// Fresh for five minutes, and served for a day while the source is down. It is asked
// again soon: the first call after the source is back need not wait for hours.
func TestRenewAheadOfADay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const fresh, stale = 5 * time.Minute, 24 * time.Hour
		var s source
		c := oncecache.MustNew(oncecache.Config[string, made]{
			TTLFunc: func(string, made) time.Duration { return stale }, RenewAhead: stale - fresh, Renew: s.ask,
		})
		begun := time.Now()
		c.Set("k", made{begun})
		var oldest time.Duration
		look := func(minutes int) (age time.Duration) {
			for range minutes {
				time.Sleep(time.Minute)
				synctest.Wait()
				v, ok := c.Get("k")
				synctest.Wait()
				if !ok {
					t.Fatalf("absent %v after the beginning", time.Since(begun))
				}
				age = time.Since(v.at)
				oldest = max(oldest, age)
			}
			return age
		}
		look(10 * 60)
		if oldest > fresh+time.Minute || s.calls > 10*60/5 || s.calls < 10*60/6-1 {
			t.Errorf("up to %v old while the source is up, asked %d times", oldest, s.calls)
		}
		s.down, s.calls = true, 0
		look(20 * 60)
		if s.calls > 20*60 || s.calls < 20*60/5 {
			t.Errorf("the source is down for 20 hours, and asked %d times", s.calls)
		}
		s.down = false
		if age := look(5); age > fresh+time.Minute {
			t.Errorf("%v old, 5 minutes after the source is back", age)
		}
		c.Close(t.Context())
	})
}
