package runner

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Machine watches how busy the machine is: how many threads want a processor,
// ours among them, and how long a fixed piece of work takes.
type Machine struct {
	mu      sync.Mutex
	sum     float64
	samples int

	stop chan struct{}
	done sync.WaitGroup
}

// queueEvery is how often the run queue is read.
const queueEvery = 50 * time.Millisecond

// WatchMachine begins to watch, until Stop.
func WatchMachine() *Machine {
	m := &Machine{stop: make(chan struct{})}
	m.done.Go(func() {
		ticker := time.NewTicker(queueEvery)
		defer ticker.Stop()
		for {
			select {
			case <-m.stop:
				return
			case <-ticker.C:
				if n, ok := runnable(); ok {
					m.mu.Lock()
					m.sum += float64(n)
					m.samples++
					m.mu.Unlock()
				}
			}
		}
	})
	return m
}

// Stop ends the watch.
func (m *Machine) Stop() {
	close(m.stop)
	m.done.Wait()
}

// Take returns the mean number of threads that wanted a processor since the last
// Take, and whether the system says so.
func (m *Machine) Take() (queue float64, known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	queue, known = m.sum/float64(max(m.samples, 1)), m.samples > 0
	m.sum, m.samples = 0, 0
	return queue, known
}

// runnable returns how many threads run or wait for a processor, but for the one
// that asks.
func runnable() (n int, ok bool) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, false
	}
	return parseRunnable(string(text))
}

func parseRunnable(stat string) (n int, ok bool) {
	for line := range strings.Lines(stat) {
		if rest, found := strings.CutPrefix(line, "procs_running "); found {
			n, err := strconv.Atoi(strings.TrimSpace(rest))
			return max(n-1, 0), err == nil
		}
	}
	return 0, false
}

// Probe returns how long a fixed piece of work takes, about ten milliseconds.
func Probe() time.Duration {
	began := time.Now()
	x := uint64(88172645463325252)
	for range 8_000_000 {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	}
	took := time.Since(began)
	if x == 0 { // never; so that the work is not thrown away
		return 0
	}
	return took
}

// line describes the machine since the last line.
func (m *Machine) line() string {
	var queue string
	if q, known := m.Take(); known {
		queue = fmt.Sprintf(" queue=%.1f", q)
	}
	return fmt.Sprintf("machine: cpus=%d%s probe=%s\n", runtime.NumCPU(), queue, Probe().Round(10*time.Microsecond))
}

// Noted returns a writer for whole rounds, which writes how busy the machine was
// before each.
func (m *Machine) Noted(w io.Writer) io.Writer { return noted{m, w} }

type noted struct {
	m *Machine
	w io.Writer
}

func (n noted) Write(round []byte) (int, error) {
	if _, err := io.WriteString(n.w, n.m.line()+"\n"); err != nil {
		return 0, err
	}
	return n.w.Write(round)
}
