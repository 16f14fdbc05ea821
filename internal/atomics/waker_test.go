package atomics_test

import (
	"sync"
	"testing"

	"github.com/latchfree/latchfree/internal/atomics"
)

// Any number of goroutines may try to fire an event.
func TestTryFire(t *testing.T) {
	for range 1000 {
		e := atomics.MakeEvent()
		var tried sync.WaitGroup
		for range 3 {
			tried.Go(e.TryFire)
		}
		e.Wait()
		tried.Wait()
		if !e.Fired() {
			t.Fatal("an event has not fired")
		}
	}
}

// A wake-up reaches all who have taken the event before, and nobody who comes later.
func TestWaker(t *testing.T) {
	var w atomics.Waker
	w.Wake() // nobody waits
	e := w.Event()
	if e.Fired() || w.Event() != e {
		t.Error("two who wait for the same wake-up have two events")
	}
	w.Wake()
	if !e.Fired() {
		t.Error("nobody was woken")
	}
	if late := w.Event(); late == e || late.Fired() {
		t.Error("one that comes later does not wait")
	}
}

// Those who come to wait at the same time wait for the same wake-up: an event that one
// puts in place of another's would leave that one asleep.
func TestWakerOfMany(t *testing.T) {
	for range 5000 {
		var w atomics.Waker
		var events [4]*atomics.Event
		var ready, come sync.WaitGroup
		ready.Add(len(events))
		for i := range events {
			come.Go(func() {
				ready.Done()
				ready.Wait()
				events[i] = w.Event()
			})
		}
		come.Wait()
		w.Wake()
		for _, e := range events {
			if !e.Fired() {
				t.Fatal("one of several who wait was not woken")
			}
		}
	}
}

// One that has fired and stalls is helped by the next to wait.
func TestWakerStalls(t *testing.T) {
	var w atomics.Waker
	e := w.Event()
	e.TryFire() // of a Wake that has not come further
	if late := w.Event(); late == e || late.Fired() {
		t.Error("an event that has fired is handed out")
	}
}

func TestInstall(t *testing.T) {
	var p atomics.Pointer[int]
	first, second := new(int), new(int)
	if p.Install(first) != first || p.Install(second) != first || p.Load() != first {
		t.Error("what was installed has not stayed")
	}
}
