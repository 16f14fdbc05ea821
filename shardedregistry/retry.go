package shardedregistry

import (
	"runtime"
	"slices"

	"github.com/latchfree/latchfree/internal/atomics"
)

// attemptsBeforeYielding is how many attempts fail before the processor is offered to
// others between attempts, besides that they are given time.
const attemptsBeforeYielding = 3

// attemptsBeforeDetecting is how many attempts fail before a call is listed. Other
// goroutines rarely win that often in a row, and a function that changes its
// own key has then cost microseconds. In the model, the first failure is enough.
func attemptsBeforeDetecting() int { return atomics.Limit(64, 1) }

// provenReentries is how many attempts in a row must be caught before a call gives up.
// One would do for a function that always changes its key; more spare one that
// does so now and then.
func provenReentries() int { return atomics.Limit(4, 2) }

// backOff is called when so many attempts have failed, and lets others change the
// key meanwhile.
func backOff(failed int) {
	atomics.Backoff(failed)
	if failed > attemptsBeforeYielding {
		runtime.Gosched()
	}
}

// persist repeats attempt, which runs a function of the user's on what k holds,
// until it is done or that function has changed k itself each time. Failed is how many
// attempts have failed before.
func (rt *root[K]) persist(k hkey[K], failed int, attempt func() (done bool, err error)) error {
	for ; ; failed = 0 {
		for ; failed < attemptsBeforeDetecting(); failed++ {
			if failed > 0 {
				backOff(failed)
			}
			if done, err := attempt(); done {
				return err
			}
		}
		if done, err := rt.prove(k, attempt); done {
			return err
		}
	}
}

// prove repeats attempt while it is listed as a detector, and ends it with
// ErrTooManyRetries when all of them failed and were caught.
func (rt *root[K]) prove(k hkey[K], attempt func() (done bool, err error)) (done bool, err error) {
	rt.detecting(k, func(own *bool) {
		for range provenReentries() {
			*own = false
			if done, err = attempt(); done || !*own {
				return
			}
		}
		done, err = true, ErrTooManyRetries
	})
	return done, err
}

// proveAny is prove for a function that uses several keys: it is caught if it has changed
// one of them.
func (rt *root[K]) proveAny(keys []hkey[K], attempt func() (done bool, err error)) (done bool, err error) {
	if len(keys) == 0 {
		return false, nil
	}
	own := make([]bool, len(keys))
	for i, k := range keys {
		push(&rt.detectors, &reentryDetector[K]{key: k, goroutine: atomics.Goroutine(), own: &own[i]})
	}
	defer func() { // attempt runs a user's function, which may panic
		for i := range own {
			drop(&rt.detectors, &own[i])
		}
	}()
	for range provenReentries() {
		clear(own)
		if done, err = attempt(); done || !slices.Contains(own, true) {
			return done, err
		}
	}
	return true, ErrTooManyRetries
}

// reentryDetector is a call of Update, Upsert, DeleteMatching or Transact that has failed
// attemptsBeforeDetecting times at a key, and finds out whether its own goroutine
// changes that.
//
// While it is listed, each change of the same key compares goroutine ids.
// The call's own goroutine is inside the call, so a change that it makes is
// made by the function that the call runs.
type reentryDetector[K comparable] struct {
	key       hkey[K]
	goroutine uint64
	own       *bool               // set when caught; touched by that goroutine only
	next      *reentryDetector[K] // immutable
}

// detecting calls f while a detector for k is listed. The flag that f is given
// becomes true when the calling goroutine changes k.
func (rt *root[K]) detecting(k hkey[K], f func(own *bool)) {
	own := new(bool)
	push(&rt.detectors, &reentryDetector[K]{key: k, goroutine: atomics.Goroutine(), own: own})
	defer drop(&rt.detectors, own) // f runs a user's function, which may panic
	f(own)
}

// detectReentry is called by each operation that has changed k, after the change.
func (rt *root[K]) detectReentry(k hkey[K]) {
	if first := rt.detectors.Load(); first != nil {
		detect(first, k)
	}
}

// detect tells the detectors that their own goroutine has changed their key.
func detect[K comparable](first *reentryDetector[K], k hkey[K]) {
	var me uint64 // asked for when a detector of k is met: it is slow
	for p := first; p != nil; p = p.next {
		if p.key != k {
			continue
		}
		if me == 0 {
			me = atomics.Goroutine()
		}
		if me != 0 && p.goroutine == me { // 0 would mean that goroutines have no ids
			*p.own = true
		}
	}
}

// push puts p at the head of list. It is retried only when another detector has
// come or gone meanwhile.
func push[K comparable](list *atomics.Pointer[reentryDetector[K]], p *reentryDetector[K]) {
	for {
		p.next = list.Load()
		if list.CompareAndSwap(p.next, p) {
			return
		}
	}
}

// drop replaces list by a copy without the detector whose flag is own. It is
// retried only when another detector has come or gone meanwhile.
func drop[K comparable](list *atomics.Pointer[reentryDetector[K]], own *bool) {
	for {
		first := list.Load()
		if list.CompareAndSwap(first, without(first, own)) {
			return
		}
	}
}

// without returns a copy of the list without the detector whose flag is own.
func without[K comparable](p *reentryDetector[K], own *bool) *reentryDetector[K] {
	switch {
	case p == nil:
		return nil
	case p.own == own:
		return p.next
	}
	q := *p
	q.next = without(p.next, own)
	return &q
}
