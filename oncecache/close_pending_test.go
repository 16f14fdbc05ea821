//go:build !modelcheck

package oncecache_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchfree/latchfree/oncecache"
)

// Close names what it has not waited for, and waits for it the next time.
func TestCloseNamesWhatIsPending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		c := oncecache.MustNew(config{Close: func(string, int) error { <-hang; return nil }})
		oncecache.LimitClosers(c, 1)
		for _, k := range []string{"value 1", "value 2", "value 3", "leased"} {
			c.Set(k, 1)
		}
		lease, err := c.Acquire(t.Context(), "leased", notAsked)
		if err != nil {
			t.Fatal(err)
		}
		gone, err := c.Acquire(t.Context(), "gone", makes(2))
		if err != nil {
			t.Fatal(err)
		}
		c.Delete("gone")
		flight := begin(t, c, "flight")
		hidden := begin(t, c, "hidden")
		c.Delete("hidden")
		deleted := startCall(func() (int, error) { v, _ := c.Delete("value 3"); return v, nil })
		refresh := newPilot()
		refreshed := startCall(func() (int, error) { return c.Refresh(t.Context(), "value 1", anew(refresh.create)) })
		synctest.Wait()

		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errRefused)
		defer cancel()
		for range 2 {
			err = c.Close(ctx)
			var pending *oncecache.PendingError
			if !errors.As(err, &pending) || !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("Close returns %v", err)
			}
			for what, tt := range map[string]struct{ got, want []any }{
				"creating": {pending.Creating, []any{"flight", "hidden", "value 1"}},
				"leased":   {pending.Leased, []any{"gone", "leased", "value 1"}}, // by the Refresh
				"closing":  {pending.Closing, []any{"value 2", "value 3"}},
			} {
				slices.SortFunc(tt.got, func(a, b any) int { return slices.Compare([]byte(a.(string)), []byte(b.(string))) })
				if !slices.Equal(tt.got, tt.want) {
					t.Errorf("%s %v, want %v", what, tt.got, tt.want)
				}
			}
		}

		// The closing goes on, and the next Close waits again.
		again := startCall(func() (int, error) { return 0, c.Close(t.Context()) })
		for _, release := range []func(){
			func() { flight.end <- with(3) },
			func() { hidden.end <- with(4) },
			func() { refresh.end <- with(5) },
			lease.Release,
			gone.Release,
		} {
			synctest.Wait()
			select {
			case <-again.done:
				t.Fatalf("Close returns %v before all is over", again.err)
			default:
			}
			go release()
		}
		synctest.Wait()
		close(hang)
		wantAll(t, []*call{again}, result{})
		wantAll(t, []*call{deleted}, result{value: 1})
		wantAll(t, []*call{refreshed}, result{err: oncecache.ErrClosed})
		if n := c.Stats().Closed; n != 8 || oncecache.Pending(c) != 0 {
			t.Errorf("%d closed, %d pending", n, oncecache.Pending(c))
		}
	})
}

// The text names a few of the keys.
func TestPendingErrorText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := oncecache.MustNew(config{Close: func(string, int) error { return nil }})
		var leases []oncecache.Lease[string, int]
		for i := range 7 {
			l, err := c.Acquire(t.Context(), fmt.Sprint("k", i), makes(i))
			if err != nil {
				t.Fatal(err)
			}
			leases = append(leases, l)
			c.Delete(fmt.Sprint("k", i))
		}
		flight := begin(t, c, "slow")
		want := "oncecache: not closed in time; creating slow; leased k0, k1, k2, k3, k4 and 2 more: context canceled"
		if err := c.Close(ended(t)); err == nil || err.Error() != want {
			t.Errorf("Close returns\n%v, want\n%s", err, want)
		}
		flight.end <- with(1)
		for i := range leases {
			leases[i].Release()
		}
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// What a batch has held, and waits to be closed, is named once: no lease holds it.
func TestPendingErrorAfterABatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		c := oncecache.MustNew(config{Close: func(string, int) error { <-hang; return nil }})
		oncecache.LimitClosers(c, 1)
		c.Set("hangs", 1)
		c.Clear()
		synctest.Wait()
		c.Set("held", 1)
		_, err := c.GetOrCreateMany(t.Context(), []string{"held", "new"}, func(_ context.Context, keys []string) (map[string]int, error) {
			c.Delete("held")
			return map[string]int{"new": 2}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		var pending *oncecache.PendingError
		if err := c.Close(ended(t)); !errors.As(err, &pending) {
			t.Fatalf("Close returns %v", err)
		}
		if want := []any{"hangs", "held", "new"}; len(pending.Leased) != 0 || len(pending.Creating) != 0 || !slices.Equal(pending.Closing, want) {
			t.Errorf("leased %v, creating %v, closing %v, want %v", pending.Leased, pending.Creating, pending.Closing, want)
		}
		close(hang)
		if err := c.Close(t.Context()); err != nil || oncecache.Pending(c) != 0 {
			t.Errorf("%v, %d are pending", err, oncecache.Pending(c))
		}
	})
}

// The value of the last lease is named as one that is being closed, and as nothing
// when its Close function has returned.
func TestPendingErrorAfterALease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		c := oncecache.MustNew(config{Close: func(k string, _ int) error {
			if k == "held" {
				<-hang
			}
			return nil
		}})
		held, err := c.Acquire(t.Context(), "held", makes(1))
		if err != nil {
			t.Fatal(err)
		}
		other, err := c.Acquire(t.Context(), "other", makes(2))
		if err != nil {
			t.Fatal(err)
		}
		c.Delete("held")
		released := startCall(func() (int, error) { held.Release(); return 0, nil })
		synctest.Wait()
		named := func(closing ...any) {
			t.Helper()
			var pending *oncecache.PendingError
			if err := c.Close(ended(t)); !errors.As(err, &pending) {
				t.Fatalf("Close returns %v", err)
			}
			if !slices.Equal(pending.Leased, []any{"other"}) || !slices.Equal(pending.Closing, closing) {
				t.Errorf("leased %v, closing %v, want %v", pending.Leased, pending.Closing, closing)
			}
		}
		named("held")
		close(hang)
		released.wait(t)
		named()
		other.Release()
		if err := c.Close(t.Context()); err != nil || oncecache.Pending(c) != 0 {
			t.Errorf("%v, %d are pending", err, oncecache.Pending(c))
		}
	})
}

// A value whose creation Delete has overtaken is named as long as the callers of that hold it.
func TestPendingErrorAfterAForgottenCreation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := oncecache.MustNew(config{Close: func(string, int) error { return nil }})
		gate := make(chan struct{})
		var lease oncecache.Lease[string, int]
		acquired := startCall(func() (_ int, err error) {
			lease, err = c.Acquire(t.Context(), "k", func(context.Context, string) (int, error) { <-gate; return 1, nil })
			return 0, err
		})
		synctest.Wait()
		c.Delete("k")
		close(gate)
		if r := acquired.wait(t); r.err != nil {
			t.Fatal(r.err)
		}
		ended, end := context.WithCancel(t.Context())
		end()
		var pending *oncecache.PendingError
		if err := c.Close(ended); !errors.As(err, &pending) || !slices.Equal(pending.Leased, []any{"k"}) {
			t.Errorf("%v, want k leased", err)
		}
		lease.Release()
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
