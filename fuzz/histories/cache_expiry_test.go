//go:build !modelcheck

package histories_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/latchfree/latchfree/fuzz/internal/history"
	"github.com/latchfree/latchfree/oncecache"
)

// fleeting is what is used of a cache whose values expire.
type fleeting interface {
	Get(k int) (int, bool)
	GetOrCreate(k int, create func() (int, error)) (int, error)
	Set(k, v int) (old int, replaced bool)
	SetIfAbsent(k, v int) (actual int, stored bool)
}

// fresh is what a cache holds of one key whose value expires, and the state of its model.
type fresh struct {
	value int
	until time.Duration // in the time of the bubble
}

// freshEvent is an operation on one key at one moment of the bubble's time, which passes
// between operations only.
type freshEvent struct {
	op, outcome string
	now         time.Duration
	fresh           // stored or found
	old         int // which Set replaced
}

func (e freshEvent) Kind() string { return e.op + " " + e.outcome }

func (e freshEvent) String() string {
	return fmt.Sprintf("at %v %s %s: %+v, old %d", e.now, e.op, e.outcome, e.fresh, e.old)
}

// After demands that a value is there until its deadline, and not at a later moment: timers
// have done their work before time passes. At the moment itself it is there until it was not.
func (e freshEvent) After(s fresh) (fresh, bool) {
	there := s.value != 0 && s.until >= e.now
	gone := s.value == 0 || s.until <= e.now
	switch e.outcome {
	case "found":
		return s, there && e.value == s.value
	case "absent":
		return fresh{}, gone
	case "present":
		return s, there
	case "replaced":
		return e.fresh, there && e.old == s.value
	case "stored", "created":
		return e.fresh, gone
	}
	panic(e.outcome)
}

func newFleeting() *oncecache.Cache[int, int] {
	return oncecache.MustNew(oncecache.Config[int, int]{TTLFunc: func(_, v int) time.Duration { return mortalLife("", v) }})
}

// fleetingTrial uses a cache in which the values of three keys expire.
func fleetingTrial(make func(*rand.Rand) fleeting) func(*rand.Rand) history.Trial[fresh] {
	return func(random *rand.Rand) history.Trial[fresh] {
		var c fleeting
		var start time.Time
		return history.Trial[fresh]{
			Clients: 4, Bubble: true,
			Before: func() { c, start = make(random), time.Now() },
			Work: func(client *history.Client[fresh]) {
				w := &fleetingClient{Client: client, cache: c, start: start}
				for range 8 {
					k := w.Meet(3)
					for range 3 {
						w.operate(k)
						w.Pause()
					}
					w.Sleep(time.Duration(w.IntN(3)) * mortalTick)
				}
			},
			After: func(client *history.Client[fresh]) {
				w := &fleetingClient{Client: client, cache: c, start: start}
				w.Sleep(10 * mortalTick)
				for k := range 3 {
					w.get(k)
				}
			},
		}
	}
}

// fleetingClient is a goroutine that uses a cache whose values expire.
type fleetingClient struct {
	*history.Client[fresh]
	cache fleeting
	start time.Time
	made  int
}

func (w *fleetingClient) get(k int) {
	from, now := w.Now(), time.Since(w.start)
	e := freshEvent{op: "Get", outcome: "absent", now: now}
	if v, ok := w.cache.Get(k); ok {
		e.outcome, e.value = "found", v
	}
	w.Add(k, from, e)
}

func (w *fleetingClient) operate(k int) {
	from, now := w.Now(), time.Since(w.start)
	w.made++
	own := 1000*(1+w.ID) + w.made
	e := freshEvent{now: now, fresh: fresh{own, mortalUntil(now, mortalLife("", own))}}
	switch w.IntN(6) {
	case 0, 1, 2:
		e.op, e.outcome = "GetOrCreate", "created"
		v, err := w.cache.GetOrCreate(k, func() (int, error) {
			runtime.Gosched()
			return own, nil
		})
		if err != nil {
			w.Errorf("GetOrCreate: %v", err)
		}
		if v != own {
			e.outcome, e.fresh = "found", fresh{value: v}
		}
	case 3:
		e.op, e.outcome = "Set", "stored"
		if old, replaced := w.cache.Set(k, own); replaced {
			e.outcome, e.old = "replaced", old
		}
	case 4:
		e.op, e.outcome = "SetIfAbsent", "stored"
		if _, stored := w.cache.SetIfAbsent(k, own); !stored {
			return // it may have found a creation, which is no value yet
		}
	default:
		w.get(k)
		return
	}
	w.Add(k, from, e)
}

func TestCacheExpiryHistories(t *testing.T) {
	history.Check(t, fleetingTrial(func(*rand.Rand) fleeting { return newFleeting() }),
		"GetOrCreate created", "GetOrCreate found", "Set stored", "Set replaced", "SetIfAbsent stored", "Get found", "Get absent")
}

func TestBrokenCacheExpiryHistories(t *testing.T) {
	for name, broken := range map[string]func() fleeting{
		"values that do not expire": func() fleeting { return new(oncecache.Cache[int, int]) },
		"values that expire early": func() fleeting {
			return oncecache.MustNew(oncecache.Config[int, int]{TTLFunc: func(_, v int) time.Duration { return mortalLife("", v) - mortalTick }})
		},
		"a Get from the past":         func() fleeting { return &staleFleeting{fleeting: newFleeting()} },
		"a creation beside another":   func() fleeting { return createsBeside{newFleeting()} },
		"a SetIfAbsent in two steps":  func() fleeting { return tornIfAbsent{newFleeting()} },
		"a Set that does not replace": func() fleeting { return keepsOld{newFleeting()} },
	} {
		t.Run(name, func(t *testing.T) {
			history.Reject(t, fleetingTrial(func(*rand.Rand) fleeting { return broken() }))
		})
	}
}

// staleFleeting returns now and then what an earlier Get has found.
type staleFleeting struct {
	fleeting
	seen sync.Map
}

func (c *staleFleeting) Get(k int) (int, bool) {
	if v, ok := c.seen.LoadAndDelete(k); ok {
		return v.(int), true
	}
	v, ok := c.fleeting.Get(k)
	if ok {
		c.seen.Store(k, v)
	}
	return v, ok
}

type createsBeside struct{ fleeting }

func (c createsBeside) GetOrCreate(k int, create func() (int, error)) (int, error) {
	if v, ok := c.Get(k); ok {
		return v, nil
	}
	v, err := create()
	c.Set(k, v)
	return v, err
}

type tornIfAbsent struct{ fleeting }

func (c tornIfAbsent) SetIfAbsent(k, v int) (int, bool) {
	if now, ok := c.Get(k); ok {
		return now, false
	}
	runtime.Gosched()
	c.Set(k, v)
	return v, true
}

// keepsOld stores nothing where something is.
type keepsOld struct{ fleeting }

func (c keepsOld) Set(k, v int) (int, bool) {
	if old, ok := c.Get(k); ok {
		return old, true
	}
	return c.fleeting.Set(k, v)
}
