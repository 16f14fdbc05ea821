//go:build !modelcheck

package oncecache_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/latchfree/latchfree/oncecache"
)

// A call of GetOrCreateMany is a caller of all creations that it waits for, from
// the beginning, and of none when it has ended.
func TestManyKeepsWhatItWaitsFor(t *testing.T) {
	for how, end := range map[string]func() error{
		"returns": func() error { return nil }, "fails": func() error { return errRefused },
		"panics": func() error { panic("disk full") }, "exits": func() error { runtime.Goexit(); return nil },
	} {
		synctest.Test(t, func(t *testing.T) {
			var c oncecache.Cache[int, int]
			var ended [2]chan struct{}
			var cancelled [2]bool
			var leave [2]context.CancelFunc
			for k := range 2 {
				ended[k] = make(chan struct{})
				ctx, cancel := context.WithCancel(t.Context())
				leave[k] = cancel
				go c.GetOrCreateContext(ctx, k, func(ctx context.Context, k int) (int, error) {
					<-ended[k]
					cancelled[k] = ctx.Err() != nil
					return k, nil
				})
			}
			synctest.Wait()
			first, done := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(done)
				defer func() { recover() }()
				c.GetOrCreateMany(context.Background(), []int{0, 1, 2}, func(context.Context, []int) (map[int]int, error) {
					<-first
					return nil, end()
				})
			}()
			synctest.Wait()
			leave[0]()
			leave[1]()
			synctest.Wait()
			close(ended[0])
			synctest.Wait()
			close(first)
			synctest.Wait() // it still waits for 1, or has ended
			close(ended[1])
			<-done
			synctest.Wait()
			if stays := how == "returns" || how == "fails"; cancelled[0] || cancelled[1] == stays {
				t.Errorf("%s: creations called off: %v", how, cancelled)
			}
		})
	}
}

// A panic on a goroutine of its own leaves all creations that come after it.
func TestManyThatPanicsLeavesAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c oncecache.Cache[int, int]
		others, leave := context.WithCancel(t.Context())
		var flights []context.Context
		for k := range 2 {
			go c.GetOrCreateContext(others, k, func(ctx context.Context, _ int) (int, error) {
				flights = append(flights, ctx)
				<-ctx.Done()
				return 0, ctx.Err()
			})
			synctest.Wait()
		}
		first := make(chan struct{})
		many := startCall(func() (int, error) {
			_, err := c.GetOrCreateMany(t.Context(), []int{2, 0, 1}, func(context.Context, []int) (map[int]int, error) {
				<-first
				panic("disk full")
			})
			return 0, err
		})
		synctest.Wait()
		leave()
		synctest.Wait()
		if flights[0].Err() != nil || flights[1].Err() != nil {
			t.Error("called off though somebody waits")
		}
		close(first)
		if r := many.wait(t); r.panicked == nil {
			t.Errorf("%+v", r)
		}
		synctest.Wait()
		if flights[0].Err() == nil || flights[1].Err() == nil {
			t.Error("nobody waits, and it is not called off")
		}
	})
}

// Errors of keys are returned although the context has ended since.
func TestManyJoinsErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c oncecache.Cache[int, int]
		left, leave := context.WithCancel(t.Context())
		end := make(chan struct{})
		go c.GetOrCreateContext(left, 1, func(context.Context, int) (int, error) { <-end; return 0, errRefused })
		synctest.Wait()
		leave() // so that the call below is an heir, who looks again
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		failing := errors.New("no such key")
		x := startCall(func() (int, error) {
			_, err := c.GetOrCreateMany(ctx, []int{1, 2}, func(context.Context, []int) (map[int]int, error) { return nil, failing })
			return 0, err
		})
		synctest.Wait()
		cancel()
		close(end)
		if r := x.wait(t); !errors.Is(r.err, failing) || !errors.Is(r.err, context.Canceled) {
			t.Errorf("%+v", r)
		}
	})
}
