package main

import (
	"bytes"
	"runtime"
	"sync"
)

// quiet reports whether every goroutine but the calling one waits for another:
// for a channel, a lock, a group. So it tells a caller that is blocked from one
// that is slow, however loaded the machine is.
func quiet() bool { return stacks.quiet() }

// stacks keeps the buffer of quiet, which is large where there are many
// goroutines and must not be made anew at each look.
var stacks watch

type watch struct {
	mu  sync.Mutex
	buf []byte
}

func (w *watch) quiet() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := runtime.Stack(w.buf, true)
	for n == len(w.buf) {
		w.buf = make([]byte, max(1<<16, 2*n))
		n = runtime.Stack(w.buf, true)
	}
	for i, stack := range bytes.Split(w.buf[:n], []byte("\n\n")) {
		if i > 0 && !waits(stack) { // the first is the caller's
			return false
		}
	}
	return true
}

// waits reports whether the goroutine of this stack waits for another one. It
// begins like "goroutine 7 [chan receive, 2 minutes]:".
func waits(stack []byte) bool {
	_, rest, _ := bytes.Cut(stack, []byte("["))
	state, _, ok := bytes.Cut(rest, []byte("]"))
	if !ok {
		return false
	}
	state, _, _ = bytes.Cut(state, []byte(","))
	state = bytes.TrimSuffix(state, []byte(" (scan)"))
	switch string(state) {
	case "chan receive", "chan receive (nil chan)", "chan send", "chan send (nil chan)",
		"select", "select (no cases)", "semacquire", "finalizer wait",
		"sync.Cond.Wait", "sync.Mutex.Lock", "sync.RWMutex.Lock", "sync.RWMutex.RLock", "sync.WaitGroup.Wait":
		return true
	}
	return false // it runs, is about to, sleeps, or waits for the system
}
