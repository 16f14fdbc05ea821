package runner

import (
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// queueEvery is how often the run queue is read.
const queueEvery = 50 * time.Millisecond

// Queue returns the mean number of threads that run or wait for a processor
// during the given time, but for the one that asks, and whether the system says so.
func Queue(ctx context.Context, during time.Duration) (threads float64, known bool) {
	sum, reads := 0, 0
	next := time.NewTicker(queueEvery)
	defer next.Stop()
	for end := time.Now().Add(during); time.Now().Before(end) && ctx.Err() == nil; {
		text, err := os.ReadFile("/proc/stat")
		if err != nil {
			return 0, false
		}
		if n, ok := parseRunnable(string(text)); ok {
			sum += n
			reads++
		}
		select {
		case <-next.C:
		case <-ctx.Done():
		}
	}
	return float64(sum) / float64(max(reads, 1)), reads > 0
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

// Others measures how many processors everything takes but this process and its
// children: other processes, the system, and other guests of the host.
type Others struct{ last ticks }

// WatchOthers begins to measure.
func WatchOthers() *Others {
	now, _ := readTicks()
	return &Others{now}
}

// Take returns how many processors others took, on average, since the last Take,
// and whether the system says so. Children count as ours when they have ended.
func (o *Others) Take() (processors float64, known bool) {
	now, ok := readTicks()
	if !ok {
		return 0, false
	}
	if processors, known = now.minus(o.last).others(runtime.NumCPU()); known {
		o.last = now
	}
	return processors, known
}

// ticks count the time of all processors since the machine was started.
type ticks struct {
	all  int64
	busy int64 // neither idle nor waiting for a disk
	ours int64 // of this process and its children
}

func (t ticks) minus(u ticks) ticks {
	return ticks{t.all - u.all, t.busy - u.busy, t.ours - u.ours}
}

// others returns how many of so many processors others took while t passed, and
// whether any time has passed. The system may count ours sooner than what is busy.
func (t ticks) others(cpus int) (processors float64, known bool) {
	if t.all <= 0 {
		return 0, false
	}
	return max(float64(t.busy-t.ours)/float64(t.all)*float64(cpus), 0), true
}

func readTicks() (t ticks, ok bool) {
	all, err := os.ReadFile("/proc/stat")
	if err != nil {
		return ticks{}, false
	}
	self, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return ticks{}, false
	}
	return parseTicks(string(all), string(self))
}

func parseTicks(all, self string) (t ticks, ok bool) {
	// user nice system idle iowait irq softirq steal; what guests take is in user
	first, _, _ := strings.Cut(all, "\n")
	fields := strings.Fields(first)
	if len(fields) < 9 || fields[0] != "cpu" {
		return ticks{}, false
	}
	for i, field := range fields[1:9] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return ticks{}, false
		}
		t.all += n
		if i != 3 && i != 4 {
			t.busy += n
		}
	}
	// After the name, in parentheses, utime, stime, cutime and cstime are fields 12 to 15.
	fields = strings.Fields(self[strings.LastIndexByte(self, ')')+1:])
	if len(fields) < 15 {
		return ticks{}, false
	}
	for _, field := range fields[11:15] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return ticks{}, false
		}
		t.ours += n
	}
	return t, true
}

// probe returns how long a fixed piece of work takes, some ten milliseconds: the
// shortest of three times, so that one interruption does not count.
func probe() time.Duration {
	shortest := time.Duration(math.MaxInt64)
	x := uint64(88172645463325252)
	for range 3 {
		began := time.Now()
		for range 8_000_000 {
			x ^= x << 13
			x ^= x >> 7
			x ^= x << 17
		}
		shortest = min(shortest, time.Since(began))
	}
	if x == 0 { // never; so that the work is not thrown away
		return 0
	}
	return shortest
}

// State says what the machine takes for what all measurements contain.
func State() string {
	const reads = 100_000
	began := time.Now()
	now := began
	for range reads {
		now = time.Now()
	}
	clock := now.Sub(began) / reads

	// A cycle through all lines of 32 MB in a random order, which no prefetcher guesses.
	const page, line, size = 4096, 64, 32 << 20
	began = time.Now()
	memory := make([]uint32, size/4)
	for i := 0; i < len(memory); i += page / 4 {
		memory[i] = 1
	}
	use := time.Since(began) / (size / page)
	order := rand.New(rand.NewPCG(1, 2)).Perm(size / line)
	for i, at := range order {
		memory[at*(line/4)] = uint32(order[(i+1)%len(order)] * (line / 4))
	}
	began = time.Now()
	at := uint32(order[0] * (line / 4))
	for range reads {
		at = memory[at]
	}
	read := time.Since(began) / reads
	if at == math.MaxUint32 { // never
		return ""
	}
	return fmt.Sprintf("clock read %v, memory read %v, first use of a page %v", clock, read, use)
}

// line describes the machine since the last line.
func (o *Others) line() string {
	var others string
	if taken, known := o.Take(); known {
		others = fmt.Sprintf(" others=%.2f", taken)
	}
	return fmt.Sprintf("machine: cpus=%d%s probe=%s\n", runtime.NumCPU(), others, probe().Round(10*time.Microsecond))
}

// Noted returns a writer for whole rounds, which writes before each how busy the
// machine was.
func (o *Others) Noted(w io.Writer) io.Writer { return noted{o, w} }

type noted struct {
	o *Others
	w io.Writer
}

func (n noted) Write(round []byte) (int, error) {
	if _, err := io.WriteString(n.w, n.o.line()+"\n"); err != nil {
		return 0, err
	}
	return n.w.Write(round)
}
