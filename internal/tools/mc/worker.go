//go:build modelcheck

package mc

import "github.com/latchfree/latchfree/internal/goid"

// A worker is a goroutine that runs one thread of each execution: to start a
// goroutine, and to let its stack grow, takes longer than most executions do.
//
// Within an execution no worker runs two threads, because the race detector
// would take the second for what comes after the first.
type worker struct {
	work chan *thread
	wake chan struct{} // gives the thread the turn

	goid  uint64
	token uintptr
}

// hire gives t a goroutine, which begins with it. The race detector sees that
// as the go statement that it stands for.
//
//go:norace
func (m *M) hire(t *thread) {
	if n := len(m.idle); n > 0 {
		t.worker, m.idle = m.idle[n-1], m.idle[:n-1]
	} else {
		t.worker = &worker{work: make(chan *thread, 1), wake: make(chan struct{}, 1)}
		go t.worker.serve(m)
	}
	t.work <- t
}

func (w *worker) serve(m *M) {
	w.goid, w.token = goid.ID(), goid.Token()
	for t := range w.work {
		m.main(t)
	}
}

// dismiss takes back the workers of an execution that has ended, but for those
// whose goroutines runtime.Goexit has ended.
func (m *M) dismiss() {
	for _, t := range m.threads {
		if t.returned {
			m.idle = append(m.idle, t.worker)
		}
	}
}

// retire ends the workers.
func (m *M) retire() {
	for _, w := range m.idle {
		close(w.work)
	}
	m.idle = nil
}
