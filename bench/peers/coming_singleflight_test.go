package peers

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"golang.org/x/sync/singleflight"

	"github.com/latchfree/latchfree/oncecache"
)

// doInt is Do for a function that makes a number.
func doInt(g *singleflight.Group, key string, fn func() (int, error)) (int, error) {
	v, err, _ := g.Do(key, func() (any, error) { return fn() })
	n, _ := v.(int)
	return n, err
}

// endings returns how three calls at once end, and how often the function was called, there and here.
func endings(end func() (int, error)) (theirs, ours []string, theirCalls, ourCalls int) {
	var g singleflight.Group
	var c oncecache.Cache[string, int]
	theirs = crowd(3, func(int) (int, error) { return doInt(&g, "k", slowly(&theirCalls, end)) })
	ours = crowd(3, func(int) (int, error) { return c.GetOrCreate("k", slowly(&ourCalls, end)) })
	return theirs, ours, theirCalls, ourCalls
}

var singleflightRows = []row{
	{"do", func(t *testing.T) {
		theirs, ours, theirCalls, ourCalls := endings(seven)
		assert.Equal(t, []string{hasValue, hasValue, hasValue}, theirs)
		assert.Equal(t, theirs, ours)
		assert.Equal(t, []int{1, 1}, []int{theirCalls, ourCalls})
	}},
	{"stays", func(t *testing.T) {
		var g singleflight.Group
		var keeps, forgets oncecache.Cache[string, int]
		var calls [3]int
		for range 2 {
			doInt(&g, "k", slowly(&calls[0], seven))
			keeps.GetOrCreate("k", slowly(&calls[1], seven))
			forgets.GetOrCreate("k", slowly(&calls[2], seven))
			forgets.Delete("k")
		}
		assert.Equal(t, [3]int{2, 1, 2}, calls)
	}},
	{"do-chan", func(t *testing.T) {
		var g singleflight.Group
		var c oncecache.Cache[string, int]
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		end := make(chan struct{})
		theirDone, ourDone := false, false
		select {
		case <-g.DoChan("k", func() (any, error) { <-end; theirDone = true; return 7, nil }):
			t.Error("DoChan has a result")
		case <-ctx.Done():
		}
		_, err := c.GetOrCreateContext(ctx, "l", func(ctx context.Context, _ string) (int, error) { return 0, ctx.Err() })
		assert.ErrorIs(t, err, context.DeadlineExceeded)

		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = c.GetOrCreateContext(ctx, "k", func(ctx context.Context, _ string) (int, error) {
			<-ctx.Done() // ours learns that nobody waits any more
			ourDone = true
			return 0, ctx.Err()
		})
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		synctest.Wait()
		assert.False(t, theirDone)
		assert.True(t, ourDone)
		close(end)
	}},
	{"forget", func(t *testing.T) {
		var g singleflight.Group
		var c oncecache.Cache[string, int]
		var theirs, ours int
		go doInt(&g, "k", slowly(&theirs, seven))
		go c.GetOrCreate("k", slowly(&ours, seven))
		synctest.Wait()
		g.Forget("k")
		c.Delete("k")
		go doInt(&g, "k", slowly(&theirs, seven))
		go c.GetOrCreate("k", slowly(&ours, seven))
		synctest.Wait()
		assert.Equal(t, 2, theirs)
		assert.Equal(t, 2, ours)
		time.Sleep(time.Minute)
	}},
	{"shared", func(t *testing.T) {
		var g singleflight.Group
		c := ourCache(t, oncecache.Config[string, int]{RecordStats: true})
		var calls, shared int
		crowd(3, func(int) (int, error) {
			_, err, s := g.Do("k", func() (any, error) { return slowly(&calls, seven)() })
			if s {
				shared++
			}
			return 0, err
		})
		crowd(3, func(int) (int, error) { return c.GetOrCreate("k", slowly(&calls, seven)) })
		assert.Equal(t, 3, shared)
		assert.EqualValues(t, 2, c.Stats().Joined) // without the one that has made it
	}},
	{"errors", func(t *testing.T) {
		theirs, ours, theirCalls, ourCalls := endings(failed)
		assert.Equal(t, []string{hasError, hasError, hasError}, theirs)
		assert.Equal(t, theirs, ours)
		assert.Equal(t, []int{1, 1}, []int{theirCalls, ourCalls})
	}},
	{"panics", func(t *testing.T) {
		theirs, ours, _, _ := endings(panicky)
		assert.Equal(t, []string{panicked, panicked, panicked}, theirs)
		assert.Equal(t, []string{panicked, hasError, hasError}, ours)
	}},
	{"goexit", func(t *testing.T) {
		theirs, ours, _, _ := endings(exiting)
		assert.Equal(t, []string{exited, exited, exited}, theirs)
		assert.Equal(t, []string{exited, hasError, hasError}, ours)
	}},
	{"own-key", func(t *testing.T) {
		var g singleflight.Group
		var c oncecache.Cache[string, int]
		hangs := false
		doInt(&g, "k", func() (int, error) {
			select {
			case <-g.DoChan("k", func() (any, error) { return 7, nil }):
			case <-time.After(time.Hour):
				hangs = true
			}
			return 7, nil
		})
		assert.True(t, hangs)
		create := func(ctx context.Context, k string) (int, error) { return c.GetOrCreateContext(ctx, k, nil1) }
		_, err := c.GetOrCreateContext(t.Context(), "k", create)
		var cycle *oncecache.CycleError
		assert.ErrorAs(t, err, &cycle)
	}},
}

func nil1(context.Context, string) (int, error) { return 1, nil }
