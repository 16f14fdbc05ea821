package main

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/latchfree/latchfree/bench/internal/locked"
)

// lockedPeer holds one lock during a creation.
var lockedPeer = peer{name: "locked", open: func(c config[string, *engine]) cache[string, *engine] {
	return &lockedCache{config: c}
}}

type lockedCache struct {
	locked.MutexCache[string, *engine]
	config config[string, *engine]
}

func (c *lockedCache) get(ctx context.Context, key string) (*engine, error) {
	return c.GetOrCreate(key, func() (*engine, error) { return c.config.create(ctx, key) })
}
func (c *lockedCache) set(key string, e *engine) { c.Set(key, e) }
func (c *lockedCache) delete(key string)         { c.Delete(key) }
func (c *lockedCache) expire()                   { c.Delete("a") }
func (c *lockedCache) renew(key string) (*engine, error) {
	v, _ := c.Get(key)
	c.Delete(key)
	go func() { _, _ = c.get(context.Background(), key) }()
	return v, nil
}
func (c *lockedCache) sweep() { c.Delete("a") }

// naivePeer looks, creates and stores, and leaves nothing out that can go
// wrong: it keeps errors as nil, swallows panics, tells its listener of values
// that stay and of no others, and remembers all that failed.
var naivePeer = peer{name: "naive", open: func(c config[string, *engine]) cache[string, *engine] {
	return &naiveCache{config: c}
}}

// stubbornPeer keeps what came first, whatever is set.
var stubbornPeer = peer{name: "stubborn", open: func(c config[string, *engine]) cache[string, *engine] {
	return &stubbornCache{naiveCache{config: c, stubborn: true}}
}}

// chattyPeer tells its listener of whatever was there, and does not ask whether it
// still is; its looks remove what they find, and nobody can close it.
var chattyPeer = peer{
	name: "chatty",
	open: func(c config[string, *engine]) cache[string, *engine] {
		return &chattyCache{naiveCache{config: c}}
	},
	parts: func(c config[string, part]) cache[string, part] { return &chattyParts{config: c} },
}

type chattyParts struct {
	config config[string, part]
	last   part
	some   bool
}

func (c *chattyParts) get(ctx context.Context, key string) (part, error) {
	return c.config.create(ctx, key)
}
func (c *chattyParts) set(key string, v part) {
	if c.some {
		c.config.left(key, c.last)
	}
	c.last, c.some = v, true
}
func (c *chattyParts) delete(key string) { c.config.left(key, c.last) }

// forgetfulPeer forgets, and tells its listener of what is set again only.
var forgetfulPeer = peer{name: "forgetful", open: func(c config[string, *engine]) cache[string, *engine] {
	return &forgetfulCache{naiveCache{config: c}}
}}

type forgetfulCache struct{ naiveCache }

func (c *forgetfulCache) set(key string, e *engine) {
	if old, ok := c.values.Swap(key, e); ok {
		c.config.left(key, old.(*engine))
	}
}

type chattyCache struct{ naiveCache }

func (c *chattyCache) set(key string, e *engine) {
	if old, ok := c.values.Swap(key, e); ok && c.config.left != nil {
		c.config.left(key, old.(*engine))
	}
}
func (c *chattyCache) delete(key string) {
	if old, ok := c.values.LoadAndDelete(key); ok && c.config.left != nil {
		c.config.left(key, old.(*engine))
	}
}
func (c *chattyCache) refresh(key string) (*engine, error) {
	e, err := c.config.create(context.Background(), key)
	c.set(key, e)
	return e, err
}
func (c *chattyCache) getMany(ctx context.Context, keys []string) (map[string]*engine, error) {
	made, err := c.config.createMany(ctx, keys)
	for key, e := range made {
		c.config.left(key, e)
	}
	return made, err
}
func (c *chattyCache) peek(key string) (*engine, bool) {
	e, ok := c.values.LoadAndDelete(key)
	if !ok {
		return nil, false
	}
	return e.(*engine), true
}
func (c *chattyCache) close(context.Context) { select {} }

type stubbornCache struct{ naiveCache }

func (c *stubbornCache) set(key string, e *engine) { c.values.LoadOrStore(key, e) }

type naiveCache struct {
	stubborn bool
	values   sync.Map
	config   config[string, *engine]
	mu       sync.Mutex
	kept     []byte
}

func (c *naiveCache) get(ctx context.Context, key string) (*engine, error) {
	if e, ok := c.values.Load(key); ok {
		return e.(*engine), nil
	}
	if c.config.missed != nil {
		c.config.missed()
	}
	e, err := func() (*engine, error) {
		defer func() { _ = recover() }()
		return c.config.create(ctx, key)
	}()
	if err != nil {
		c.mu.Lock()
		c.kept = append(c.kept, make([]byte, 64)...)
		if len(c.kept) < 64_000 {
			go func() { <-make(chan int) }()
		}
		c.mu.Unlock()
	}
	if c.stubborn {
		c.values.LoadOrStore(key, e)
	} else {
		c.values.Store(key, e)
	}
	if c.config.bound > 0 && c.config.left != nil {
		c.values.Range(func(key, e any) bool {
			c.config.left(key.(string), e.(*engine))
			return false
		})
	}
	return e, err
}
func (c *naiveCache) set(key string, e *engine) { c.values.Store(key, e) }
func (c *naiveCache) delete(key string)         { c.values.Delete(key) }
func (c *naiveCache) close(context.Context)     {}
func (c *naiveCache) expire()                   {}
func (c *naiveCache) sweep()                    {}
func (c *naiveCache) refresh(key string) (*engine, error) {
	c.delete(key)
	return c.get(context.Background(), key)
}
func (c *naiveCache) reload(key string, look func(*engine)) (*engine, error) {
	look(nil)
	return c.refresh(key)
}
func (c *naiveCache) renew(key string) (*engine, error) { return c.refresh(key) }
func (c *naiveCache) clear()                            { c.values.Clear() }
func (c *naiveCache) getMany(ctx context.Context, keys []string) (map[string]*engine, error) {
	made, _ := func() (map[string]*engine, error) {
		defer func() { _ = recover() }()
		return c.config.createMany(ctx, keys)
	}()
	for key, e := range made {
		c.values.Store(key, e)
	}
	got := make(map[string]*engine)
	for _, key := range keys {
		got[key] = made[key]
	}
	return got, nil
}
func (c *naiveCache) peek(key string) (*engine, bool) {
	e, err := c.get(context.Background(), key)
	return e, err == nil
}
func (c *naiveCache) wait(ctx context.Context, key string) (*engine, error) { return c.get(ctx, key) }
func (c *naiveCache) each(f func(string) bool) {
	c.values.Range(func(key, _ any) bool { return f(key.(string)) })
}
func (c *naiveCache) acquire(ctx context.Context, key string) (*engine, func(), error) {
	e, err := c.get(ctx, key)
	return e, func() {}, err
}

// A case that no cache fails would prove nothing about those that pass.
func TestCasesFail(t *testing.T) {
	for _, x := range []struct {
		peer *peer
		f    func(*trial)
		want status
	}{
		{&lockedPeer, slowKey, fail},
		{&lockedPeer, slowHit, fail},
		{&lockedPeer, otherKey, hang},
		{&lockedPeer, ownKey, hang},
		{&lockedPeer, waiterLeaves, fail},
		{&lockedPeer, creatorLeaves, fail},
		{&lockedPeer, allLeft, pass}, // the creator's context is create's
		{&naivePeer, once, fail},
		{&naivePeer, publication, fail},
		{&naivePeer, setInFlight, fail},
		{&naivePeer, successor, wrong},
		{&naivePeer, sharedError, fail},
		{&naivePeer, forgottenError, fail},
		{&naivePeer, panicWaiters, wrong},
		{&naivePeer, panicKey, fail},
		{&naivePeer, goexitKey, pass},
		{&naivePeer, overlap, fail},
		{&naivePeer, deleteInFlight, wrong},
		{&naivePeer, lateAfterSet, na},
		{&naivePeer, orphanedByDelete, fail},
		{&naivePeer, inUse, fail},
		{&naivePeer, closeInFlight, fail},
		{&lockedPeer, diamond, hang},
		{&lockedPeer, cycleOfCaches, hang},
		{&lockedPeer, cycleWithoutContext, hang},
		{&lockedPeer, laterSelf, pass}, // it waits for the lock, and then finds the value
		{&lockedPeer, expiredInFlight, fail},
		{&lockedPeer, expiredTold, fail},
		{&naivePeer, peekInFlight, fail},
		{&naivePeer, waitOnly, hang},
		{&naivePeer, keptError, fail},
		{&stubbornPeer, keptErrorSet, fail},
		{&naivePeer, keptCancellation, fail},
		{&naivePeer, refreshServes, fail},
		{&naivePeer, refreshShared, fail},
		{&naivePeer, refreshFails, fail},
		{&naivePeer, refreshPanics, fail},
		{&naivePeer, refreshExits, fail},
		{&naivePeer, refreshSet, fail},
		{&naivePeer, refreshDeleted, wrong},
		{&naivePeer, refreshTold, fail},
		{&naivePeer, batchOverlap, fail},
		{&naivePeer, batchOpposite, fail},
		{&naivePeer, batchAndSingle, fail},
		{&naivePeer, batchFails, wrong},
		{&naivePeer, batchPanics, wrong},
		{&naivePeer, batchOmits, wrong},
		{&naivePeer, batchAdds, fail},
		{&stubbornPeer, batchAddsFlight, fail},
		{&naivePeer, boundKept, fail},
		{&naivePeer, evictedTold, fail},
		{&naivePeer, evictedInUse, fail},
		{&naivePeer, expired, wrong},
		{&lockedPeer, deletedKeys, fail},
		{&lockedPeer, leftWaiters, fail},
		{&lockedPeer, evictedCallback, hang},
		{&naivePeer, refreshExpired, fail},
		{&chattyPeer, refreshSame, wrong},
		{&naivePeer, renewalServes, fail},
		{&lockedPeer, renewalServes, fail},
		{&lockedPeer, renewalHangs, hang},
		{&naivePeer, hookExits, fail},
		{&forgetfulPeer, setOver, fail},
		{&naivePeer, setOver, na},
		{&chattyPeer, setSameParts, wrong},
		{&chattyPeer, writeBack, wrong},
		{&naivePeer, reloadRight, fail},
		{&naivePeer, batchBeside, wrong},
		{&chattyPeer, batchBeyondBound, fail},
		{&naivePeer, hungEviction, hang},
		{&naivePeer, hungExpiry, fail},
		{&chattyPeer, idleUsed, fail},
		{&naivePeer, idleInUse, fail},
		{&naivePeer, clearInFlight, wrong},
		{&naivePeer, setSame, na},
		{&chattyPeer, setSame, wrong},
		{&chattyPeer, exclusive, fail},
		{&chattyPeer, closeHung, hang},
		{&naivePeer, keptErrorKeys, fail},
		{&naivePeer, failedKeys, fail},
		{&naivePeer, failedCallers, fail},
	} {
		t.Run(funcName(x.f)+"/"+x.peer.name, func(t *testing.T) {
			c := &testCase{run: x.f}
			o := (&trial{peer: x.peer, patience: 50 * time.Millisecond}).run(c)
			assert.Equal(t, x.want, o.Status, "%v", o)
		})
	}
}

// orphanedByDelete is lateAfterDelete with a creation that is lost.
func orphanedByDelete(t *trial) {
	orphans(t, func() {
		d := t.studio
		d.mu.Lock()
		d.all = append(d.all, &creation{key: "a", serial: len(d.all) + 1, fate: make(chan func() (*engine, error), 1)})
		d.mu.Unlock()
	})
}

func TestTrialSaysWhatIsLacking(t *testing.T) {
	p := peer{lacks: map[feature]string{contexts: "no contexts"}}
	o := (&trial{peer: &p}).run(&testCase{needs: []feature{contexts}, run: func(*trial) { t.Error("it ran") }})
	assert.Equal(t, outcome{Status: na, Note: "no contexts"}, o)
}

func TestTrialPassesOnWhatIsNoVerdict(t *testing.T) {
	assert.PanicsWithValue(t, "a bug", func() {
		(&trial{peer: &naivePeer}).run(&testCase{run: func(*trial) { panic("a bug") }})
	})
}

func TestCallersTellHowTheyEnd(t *testing.T) {
	var x trial
	for want, f := range map[string]func() (*engine, error){
		"gets engine 3":           func() (*engine, error) { return &engine{serial: 3}, nil },
		"gets (nil, nil)":         func() (*engine, error) { return nil, nil },
		"gets an error":           func() (*engine, error) { return nil, errCreate },
		"panics":                  func() (*engine, error) { panic("boom") },
		"has its goroutine ended": func() (*engine, error) { runtime.Goexit(); return nil, nil },
		"does not return":         func() (*engine, error) { select {} },
	} {
		c := x.call(f)
		if want != "does not return" {
			<-c.done
		}
		assert.Equal(t, want, c.String())
	}
}

func TestWaits(t *testing.T) {
	for state, want := range map[string]bool{
		"chan receive":            true,
		"chan receive, 2 minutes": true,
		"select (no cases)":       true,
		"sync.Mutex.Lock":         true,
		"running":                 false,
		"runnable":                false,
		"sleep":                   false,
		"IO wait":                 false,
		"syscall, 1 minutes":      false,
	} {
		assert.Equal(t, want, waits([]byte("goroutine 7 ["+state+"]:\nmain.f()")), state)
	}
	assert.False(t, waits([]byte("goroutine 7")))
}

func TestQuiet(t *testing.T) {
	var stop atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for !stop.Load() {
			runtime.Gosched()
		}
	}()
	assert.False(t, quiet(), "somebody is busy")
	stop.Store(true)
	<-done
}
