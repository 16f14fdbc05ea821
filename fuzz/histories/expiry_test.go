//go:build !modelcheck

package histories_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchfree/latchfree/fuzz/internal/history"
	reg "github.com/latchfree/latchfree/shardedregistry"
)

// mortal is what is used of a registry whose entities expire.
type mortal interface {
	Create(k string, v int) (reg.Version, error)
	Put(k string, v int) (reg.Version, error)
	Lookup(k string) (entry, bool)
	Update(k string, fn func(int) (int, error)) (entry, error)
	Delete(k string) (entry, bool)
	Renew(k string, version reg.Version, ttl time.Duration) error
	WatchFrom(ctx context.Context, after reg.Revision, filters ...reg.Filter[string]) iter.Seq2[reg.Change[string, int], error]
}

// life is what a registry holds of one key that expires, and the state of its model.
type life struct {
	value, version int
	until          time.Duration // in the time of the bubble; past: it may expire at any moment
}

// mortalEvent is an operation on one key at one moment of the bubble's time, which passes
// between operations only.
type mortalEvent struct {
	op, outcome string // as those of registryEvent; and "renewed", "expired"
	now         time.Duration
	asked       int // the version that Renew asks for
	life            // stored or found
	saw         int // what the function was given
}

func (e mortalEvent) Kind() string { return e.op + " " + e.outcome }

func (e mortalEvent) String() string {
	return fmt.Sprintf("at %v %s %s: version %d asked for, saw %d, %+v", e.now, e.op, e.outcome, e.asked, e.saw, e.life)
}

// After demands that nothing expires before its deadline, and that what is there was not
// overlooked by its timer: time passes when all timers have done their work, so nothing is
// there whose deadline was at an earlier moment.
func (e mortalEvent) After(s life) (life, bool) {
	live := s.value != 0 && s.until >= e.now
	switch e.outcome {
	case "expired":
		return life{version: e.version}, s.value != 0 && s.until <= e.now && e.version == s.version+1
	case "absent":
		return s, s.value == 0
	case "found":
		return s, live && e.value == s.value && e.version == s.version
	case "exists", "conflict":
		return s, live && e.version == s.version && e.asked != s.version
	case "renewed":
		return life{s.value, s.version, e.until}, live && e.asked == s.version
	case "deleted":
		return life{version: s.version + 1}, live && e.value == s.value && e.version == s.version
	case "stored":
		switch {
		case s.value == 0: // a first version is above all that the key had
			return e.life, e.op != "Update" && e.version > s.version
		case e.op == "Update" && e.saw != s.value:
			return e.life, false
		}
		return e.life, live && e.op != "Create" && e.version == s.version+1
	}
	panic(e.outcome)
}

const mortalTick = time.Millisecond // as exact as deadlines are, here and in package oncecache

// mortalLives are times to live, by the value. Clients sleep for ticks: so timers run when they
// wake.
var mortalLives = []time.Duration{math.MaxInt64, 0, mortalTick, mortalTick, 2 * mortalTick, mortalTick / 2}

func mortalLife(_ string, v int) time.Duration { return mortalLives[v%len(mortalLives)] }

func newMortal(r *rand.Rand) *reg.Registry[string, int] {
	return reg.MustNew(reg.Config[string, int]{Shards: 1 + r.IntN(2), History: 1 << 14, TTL: mortalLife})
}

// mortalTrial uses a registry in which what three keys hold expires. A loop over WatchFrom tells
// client 0 what has expired, as events that took effect before they were told.
func mortalTrial(fresh func(*rand.Rand) mortal) func(*rand.Rand) history.Trial[life] {
	return func(random *rand.Rand) history.Trial[life] {
		const clients = 4
		var (
			r       mortal
			start   time.Time
			working sync.WaitGroup
			first   chan *mortalClient
			expired []func() // notes what was told, on first's goroutine
			told    chan bool
			cancel  context.CancelFunc // of the loop
		)
		client := func(c *history.Client[life]) *mortalClient {
			return &mortalClient{Client: c, registry: r, start: start}
		}
		return history.Trial[life]{
			Clients: clients, Bubble: true,
			Before: func() {
				r, start = fresh(random), time.Now()
				first, told = make(chan *mortalClient, 1), make(chan bool)
				working.Add(clients)
				var ctx context.Context
				ctx, cancel = context.WithCancel(context.Background())
				go func() {
					defer close(told)
					var w *mortalClient
					for e, err := range r.WatchFrom(ctx, 0) {
						if w == nil {
							w = <-first
						}
						expired = append(expired, w.told(e.Event, err))
					}
				}()
				synctest.Wait() // until the loop has begun
			},
			Work: func(c *history.Client[life]) {
				w := client(c)
				if c.ID == 0 {
					first <- w
					defer func() {
						working.Wait()
						w.Sleep(10 * mortalTick) // until all has expired that will
						cancel()
						<-told
						for _, note := range expired {
							note()
						}
					}()
				}
				defer working.Done()
				for range 8 {
					k := w.Meet(len(registryKeys))
					for range 3 {
						w.operate(k)
						w.Pause()
					}
					w.Sleep(time.Duration(w.IntN(3)) * mortalTick)
				}
			},
			After: func(c *history.Client[life]) {
				for k := range registryKeys {
					client(c).lookup(k)
				}
			},
		}
	}
}

// mortalClient is a goroutine that uses a registry whose entities expire.
type mortalClient struct {
	*history.Client[life]
	registry mortal
	start    time.Time
	made     int
	knows    [3]int // the versions last seen
}

// told returns a function that notes what the loop has just told.
func (w *mortalClient) told(e reg.Event[string, int], err error) func() {
	at, now := w.Now(), time.Since(w.start)
	return func() {
		switch {
		case err != nil:
			w.Errorf("WatchFrom: %v", err)
		case e.Expired && !e.Deleted:
			w.Errorf("%+v has expired and is not deleted", e)
		case e.Expired:
			k := slices.IndexFunc(registryKeys, func(names []string) bool { return names[0] == e.Key })
			w.AddSpan(k, 0, at, mortalEvent{op: "timer", outcome: "expired", now: now, life: life{version: int(e.Version)}})
		}
	}
}

// mortalUntil returns the deadline of what is given this time to live now.
func mortalUntil(now, ttl time.Duration) time.Duration {
	switch {
	case ttl <= 0:
		return now
	case ttl == math.MaxInt64:
		return ttl
	}
	return (now + ttl + mortalTick - 1) / mortalTick * mortalTick
}

func (w *mortalClient) operate(k int) {
	name := registryKeys[k][0]
	from, now := w.Now(), time.Since(w.start)
	e := mortalEvent{now: now}
	w.made++
	value := 1000*(1+w.ID) + w.made
	var version reg.Version
	var err error
	switch w.IntN(7) {
	case 0:
		e.op = "Create"
		version, err = w.registry.Create(name, value)
	case 1:
		e.op = "Put"
		version, err = w.registry.Put(name, value)
	case 2:
		e.op = "Update"
		var got entry
		got, err = w.registry.Update(name, func(old int) (int, error) {
			e.saw = old
			return value, nil
		})
		version = got.Version
	case 3:
		e.op, e.outcome = "Delete", "absent"
		if got, ok := w.registry.Delete(name); ok {
			e.outcome, e.life = "deleted", life{value: got.Value, version: int(got.Version)}
		}
		w.Add(k, from, e)
		return
	case 4, 5:
		e.op, e.asked = "Renew", w.knows[k]
		ttl := mortalLives[w.IntN(len(mortalLives))]
		if err = w.registry.Renew(name, reg.Version(e.asked), ttl); err == nil {
			e.outcome, e.until = "renewed", mortalUntil(now, ttl)
			w.Add(k, from, e)
			return
		}
	default:
		w.lookup(k)
		return
	}
	var exists *reg.ExistsError
	var conflict *reg.ConflictError
	switch {
	case err == nil:
		e.outcome, e.life = "stored", life{value, int(version), mortalUntil(now, mortalLife("", value))}
		w.knows[k] = int(version)
	case errors.As(err, &exists):
		e.outcome, e.version = "exists", int(exists.Version)
	case errors.As(err, &conflict):
		e.outcome, e.version = "conflict", int(conflict.Have)
	case err == reg.ErrNotFound:
		e.outcome = "absent"
	default:
		w.Errorf("%v: %v", e, err)
		e.outcome = "absent"
	}
	w.Add(k, from, e)
}

func (w *mortalClient) lookup(k int) {
	from := w.Now()
	e := mortalEvent{op: "Lookup", outcome: "absent", now: time.Since(w.start)}
	got, ok := w.registry.Lookup(registryKeys[k][0])
	if ok {
		e.outcome, e.life = "found", life{value: got.Value, version: int(got.Version)}
		w.knows[k] = int(got.Version)
	}
	w.Add(k, from, e)
}

func TestRegistryExpiryHistories(t *testing.T) {
	history.Check(t, mortalTrial(func(r *rand.Rand) mortal { return newMortal(r) }),
		"timer expired", "Create stored", "Create exists", "Put stored", "Update stored", "Update absent",
		"Delete deleted", "Delete absent", "Renew renewed", "Renew conflict", "Renew absent", "Lookup found", "Lookup absent")
}

func TestBrokenRegistryExpiryHistories(t *testing.T) {
	for name, broken := range map[string]func(mortal) mortal{
		"a Renew that does nothing":        func(r mortal) mortal { return renewsNothing{r} },
		"a Renew of whatever is there":     func(r mortal) mortal { return renewsAnyVersion{r} },
		"a Lookup that finds what expired": func(r mortal) mortal { return &staleMortal{mortal: r} },
		"a Put that keeps the deadline":    func(r mortal) mortal { return keepsDeadline{r} },
		"a Renew that forgets to expire":   func(r mortal) mortal { return renewsForEver{r} },
	} {
		t.Run(name, func(t *testing.T) {
			history.Reject(t, mortalTrial(func(r *rand.Rand) mortal { return broken(newMortal(r)) }))
		})
	}
}

// renewsNothing finds out whether it could renew.
type renewsNothing struct{ mortal }

func (r renewsNothing) Renew(k string, version reg.Version, ttl time.Duration) error {
	if e, ok := r.Lookup(k); ok && e.Version == version {
		return nil
	}
	return r.mortal.Renew(k, version, ttl)
}

type renewsAnyVersion struct{ mortal }

func (r renewsAnyVersion) Renew(k string, version reg.Version, ttl time.Duration) error {
	if e, ok := r.Lookup(k); ok {
		version = e.Version
	}
	return r.mortal.Renew(k, version, ttl)
}

// staleMortal returns now and then what an earlier Lookup has found.
type staleMortal struct {
	mortal
	seen sync.Map
}

func (r *staleMortal) Lookup(k string) (entry, bool) {
	if e, ok := r.seen.LoadAndDelete(k); ok {
		return e.(entry), true
	}
	e, ok := r.mortal.Lookup(k)
	if ok {
		r.seen.Store(k, e)
	}
	return e, ok
}

// keepsDeadline stores a value with one deadline for all.
type keepsDeadline struct{ mortal }

func (r keepsDeadline) Put(k string, v int) (reg.Version, error) {
	version, err := r.mortal.Put(k, v)
	if err == nil {
		_ = r.mortal.Renew(k, version, mortalTick)
	}
	return version, err
}

type renewsForEver struct{ mortal }

func (r renewsForEver) Renew(k string, version reg.Version, _ time.Duration) error {
	return r.mortal.Renew(k, version, math.MaxInt64)
}
