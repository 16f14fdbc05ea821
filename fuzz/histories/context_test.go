//go:build !modelcheck

package histories_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/latchfree/latchfree/fuzz/internal/history"
	"github.com/latchfree/latchfree/oncecache"
)

// creator is what is used of a cache beside what cache has.
type creator interface {
	cache
	GetOrCreateContext(ctx context.Context, k int, create func(context.Context, int) (int, error)) (int, error)
	Close(context.Context) error
}

// contextClient is a goroutine that uses a cache, and may not want to wait.
type contextClient struct {
	*cacheClient
	cache creator
	calls []*contextCall
}

// contextCall is a call of GetOrCreateContext. Its function runs on a goroutine
// of its own, maybe for longer than the call.
type contextCall struct {
	key      int
	from, to int64
	got      promise

	run    run // of its function; not at all if began is 0
	runs   atomic.Int64
	ending cacheEnding
	steps  int
	obeys  bool // ends when its context does
}

var errGaveUp = errors.New("gave up")

// create is the call's function.
func (c *contextCall) create(ctx context.Context, now func() int64) (int, error) {
	c.runs.Add(1)
	c.run.began = now()
	for range c.steps {
		runtime.Gosched()
		if c.obeys && ctx.Err() != nil {
			c.ending = inCancellation
			break
		}
	}
	c.run.ended = now()
	switch c.ending {
	case inError:
		return c.run.value, errRefusal
	case inCancellation:
		return c.run.value, errGaveUp
	case inPanic:
		panic(errRefusal)
	case inGoexit:
		runtime.Goexit()
	}
	return c.run.value, nil
}

func (w *contextClient) operate(k int) {
	if w.IntN(2) == 0 {
		w.getOrCreate(k)
		return
	}
	w.simple(k)
}

// getOrCreate gets or creates k, unless its context ends before.
func (w *contextClient) getOrCreate(k int) {
	c := &contextCall{key: k, run: run{value: w.fresh()}, ending: inValue, steps: w.IntN(8), obeys: w.IntN(2) == 0}
	if w.IntN(3) == 0 {
		c.ending = inError + cacheEnding(w.IntN(3))
	}
	ctx, cancel := context.WithCancel(context.Background())
	var cancelling sync.WaitGroup
	leaves := w.IntN(8)
	switch steps := w.IntN(4); leaves {
	case 0:
		cancel() // too late to begin
	case 1, 2, 3:
		cancelling.Go(func() {
			for range steps {
				runtime.Gosched()
			}
			cancel()
		})
	}
	c.from = w.Now()
	returned, panicked := w.Apart(func() {
		c.got = w.gets(k, func() (int, error) {
			return w.cache.GetOrCreateContext(ctx, k, func(ctx context.Context, _ int) (int, error) { return c.create(ctx, w.Now) })
		})
	})
	c.to = w.Now()
	if err, ok := panicked.(error); ok && errors.As(err, new(*oncecache.PanicError)) {
		c.got = getsPanicError // and it is the one that created
	} else if !returned {
		w.Errorf("GetOrCreateContext(%d) panicked: %v", k, panicked)
	}
	if c.got == getsContextError && leaves > 3 {
		w.Errorf("GetOrCreateContext(%d) returned the error of a context that has not ended", k)
	}
	w.calls = append(w.calls, c)
	cancelling.Wait()
	cancel()
}

// note notes a call, once no function runs any more.
func (w *contextClient) note(c *contextCall, end int64) {
	if n := c.runs.Load(); n > 1 {
		w.Errorf("create ran %d times", n)
	}
	begin := cacheEvent{op: "begin", client: w.ID, leaves: c.got == getsContextError}
	over := cacheEvent{op: "end", client: w.ID, gets: c.got}
	if begin.leaves {
		over = cacheEvent{op: "left", client: w.ID}
	}
	if c.run.began == 0 {
		w.AddSpan(c.key, c.from, c.to, begin)
		w.AddSecond(c.key, c.from, c.to, over)
		return
	}
	begin.ok, begin.value = true, c.run.value
	w.AddSpan(c.key, c.from, min(c.to, c.run.began), begin)
	w.AddSecond(c.key, c.from, c.to, over)
	through := c.to
	if c.got != c.ending.shared(c.run.value) { // it did not wait for it
		through = end
	}
	w.created(c.key, c.from, c.run, through, c.ending)
}

// contextTrial is like cacheTrial, for callers whose contexts may end. It is
// short: a creation that all have left is over at some time before the end,
// and to find out when it has counted takes porcupine long if there are many.
func contextTrial(fresh func() creator) func(*rand.Rand) history.Trial[cacheState] {
	return func(*rand.Rand) history.Trial[cacheState] {
		c := fresh()
		var clients [cacheClients]*contextClient
		return history.Trial[cacheState]{
			Clients: cacheClients,
			Work: func(client *history.Client[cacheState]) {
				w := &contextClient{cacheClient: &cacheClient{Client: client, cache: c}, cache: c}
				clients[client.ID] = w
				for range 2 {
					k := w.Meet(cacheKeys)
					for range 4 {
						w.operate(k)
						w.Pause()
					}
				}
			},
			After: func(client *history.Client[cacheState]) {
				w := &cacheClient{Client: client, cache: c}
				for k := range cacheKeys {
					w.get(k)
				}
				if err := c.Close(context.Background()); err != nil && !errors.As(err, new(*oncecache.PanicError)) {
					w.Errorf("Close: %v", err)
				}
				end := w.Now() // of all functions
				for _, w := range clients {
					for _, c := range w.calls {
						w.note(c, end)
					}
				}
			},
		}
	}
}

func TestContextHistories(t *testing.T) {
	history.Check(t, contextTrial(func() creator { return realCache{new(oncecache.Cache[int, int])} }),
		"begin true", "begin false", "left", "end gets a value", "end gets the error", "end gets a PanicError",
		"end gets ErrGoexit", "settled in a value", "settled in an error", "settled in a panic", "settled in an exit",
		"settled in its cancellation")
}

// A Set that stalls after it has put its value into the table may find that a
// creation that it has replaced has ended in a value since, though its function
// had not even begun before: that counts as having come just before the Set.
func TestContextHistoryOfStalledSet(t *testing.T) {
	history.Check(t, func(*rand.Rand) history.Trial[cacheState] {
		return history.Trial[cacheState]{Clients: 2, After: func(*history.Client[cacheState]) {}, Work: func(client *history.Client[cacheState]) {
			w := &contextClient{cacheClient: &cacheClient{Client: client}}
			if w.ID == 0 {
				w.note(&contextCall{from: 1, to: 2, got: getsContextError, run: run{began: 6, ended: 7, value: 1}, ending: inValue}, 10)
				return
			}
			w.AddSpan(0, 3, 8, cacheEvent{op: "Set", value: 2, got: 1, ok: true})
			w.AddSpan(0, 4, 5, cacheEvent{op: "Get", got: 2, ok: true})
		}}
	})
}

func TestBrokenContextHistories(t *testing.T) {
	real := func() realCache { return realCache{new(oncecache.Cache[int, int])} }
	t.Run("room is made for the next creation at once", func(t *testing.T) {
		history.Reject(t, contextTrial(func() creator { return makesRoom{real()} }))
	})
	t.Run("a result that is dropped since nobody waits", func(t *testing.T) {
		history.Reject(t, contextTrial(func() creator { return dropsLate{real()} }))
	})
	t.Run("everyone leaves with the first caller", func(t *testing.T) {
		history.Expose(t, errGaveUp.Error(), contextTrial(func() creator { return leavesTogether{real()} }))
	})
}

// makesRoom forgets a creation when a caller has left.
type makesRoom struct{ realCache }

func (c makesRoom) GetOrCreateContext(ctx context.Context, k int, create func(context.Context, int) (int, error)) (int, error) {
	v, err := c.realCache.GetOrCreateContext(ctx, k, create)
	if err == context.Canceled {
		c.Delete(k)
	}
	return v, err
}

// dropsLate removes what a creation has made whose caller has left.
type dropsLate struct{ realCache }

func (c dropsLate) GetOrCreateContext(ctx context.Context, k int, create func(context.Context, int) (int, error)) (int, error) {
	return c.realCache.GetOrCreateContext(ctx, k, func(inner context.Context, k int) (int, error) {
		v, err := create(inner, k)
		if ctx.Err() != nil {
			err = errRefusal
		}
		return v, err
	})
}

// leavesTogether gives create the context of its caller.
type leavesTogether struct{ realCache }

func (c leavesTogether) GetOrCreateContext(ctx context.Context, k int, create func(context.Context, int) (int, error)) (int, error) {
	return c.realCache.GetOrCreateContext(ctx, k, func(_ context.Context, k int) (int, error) { return create(ctx, k) })
}
