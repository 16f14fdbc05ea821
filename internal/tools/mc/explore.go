//go:build modelcheck

package mc

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
)

// Strategy is how executions are picked.
type Strategy uint8

// The strategies.
const (
	DPOR       Strategy = iota // all of them, up to the order of steps that do not conflict
	Bounded                    // all with at most Config.Preemptions preemptions
	PCT                        // Config.Runs random ones
	roundRobin                 // one, for Transfers
)

// Unbounded, as Config.Preemptions, makes Bounded try every execution.
const Unbounded = 1 << 30

// Config says how to explore. Its zero value explores everything.
type Config struct {
	Mode Strategy

	// Preemptions is how often, in Bounded mode, a thread may lose the turn
	// although it could have gone on. Most bugs need one or two.
	Preemptions int

	// NoFurther keeps MC_LONG within Preemptions, because beyond them happens what nobody promises.
	NoFurther bool

	// Runs and Depth are, in PCT mode, the number of executions (0: 1000) and
	// of scheduling decisions that a bug may need (0: 3): see Burckhardt et
	// al., "A randomized scheduler with probabilistic guarantees of finding
	// bugs", ASPLOS 2010. Seed varies the executions.
	Runs, Depth int
	Seed        uint64

	// MaxSchedules ends the search (0: 1,000,000), and MaxSteps an execution
	// (0: 2000), which then counts as a livelock.
	MaxSchedules, MaxSteps int

	// Timed makes timers wait for M.Advance. Without it they fire at any time, so that one
	// which starts itself again until the clock has moved does so for ever.
	Timed bool

	// Replay is a failure's Result.Replay: explore that execution only.
	Replay string

	// Operations says for the book what the threads do: see Main. Linearizable
	// fills it in.
	Operations string

	stall  *stall // stop a thread for ever; nil: do not
	lines  *lines // count cache-line transfers; nil: do not
	flaw   flaw
	booked bool // somebody enters the result in the book
}

// Result is what an exploration found.
type Result struct {
	Threads   int  // of the execution that had most
	Schedules int  // executions explored
	Redundant int  // of which so many turned out to be equivalent to others
	Steps     int  // of the longest execution
	Complete  bool // everything that the strategy covers was explored

	Failure string // the first failure, or ""
	Replay  string // reproduces it
	Trace   string // its interleaving as a table
}

// String summarises the numbers.
func (r Result) String() string {
	return fmt.Sprintf("schedules=%d redundant=%d steps=%d complete=%v", r.Schedules, r.Redundant, r.Steps, r.Complete)
}

// replayVariable names the environment variable that holds a Config.Replay
// for every exploration of the process.
const replayVariable = "MC_REPLAY"

var exploring atomic.Bool

// Explore runs body once for each execution that cfg asks for, until one
// fails. The body builds fresh state, starts threads with M.Go and returns; it
// must do the same each time.
//
// One exploration runs at a time, and no other goroutine may use the seam
// meanwhile: a test that explores must not be parallel.
func Explore(cfg Config, body func(*M)) (r Result) {
	if !exploring.CompareAndSwap(false, true) {
		panic("mc: two explorations at a time")
	}
	procs := runtime.GOMAXPROCS(1) // threads take turns: another processor would be woken for nothing
	defer func() {
		runtime.GOMAXPROCS(procs)
		active = nil // if the body panicked
		exploring.Store(false)
	}()
	if !cfg.booked {
		current.unbooked()
	}
	defaults(&cfg)
	m := &M{search: search{cfg: cfg}}
	defer m.retire()
	if cfg.Replay != "" {
		m.script = parse(cfg.Replay)
		m.execute(body)
		r.Schedules, r.Steps, r.Failure = 1, m.longest, m.failure
		if m.failure != "" {
			m.describe(&r, body)
		}
		return r
	}
	for r.Schedules < cfg.MaxSchedules {
		if cfg.Mode == PCT {
			if r.Complete = r.Schedules >= cfg.Runs; r.Complete {
				break
			}
			m.random = newRandom(cfg.Seed, uint64(r.Schedules))
		}
		m.execute(body)
		r.Schedules++
		r.Steps, r.Threads = m.longest, max(r.Threads, len(m.threads))
		if r.Failure = m.failure; r.Failure != "" {
			m.describe(&r, body)
			return r
		}
		if m.free {
			r.Redundant++
		}
		if cfg.Mode != PCT && !m.backtrack() {
			r.Complete = true
			break
		}
	}
	return r
}

func defaults(cfg *Config) {
	set := func(field *int, value int) {
		if *field == 0 {
			*field = value
		}
	}
	set(&cfg.MaxSteps, 2000)
	set(&cfg.MaxSchedules, 1_000_000)
	set(&cfg.Runs, 1000)
	set(&cfg.Depth, 3)
	if cfg.Replay == "" {
		cfg.Replay = os.Getenv(replayVariable)
	}
}

// describe fills in the failure that m has just seen, by replaying it with
// recording on.
func (m *M) describe(r *Result, body func(*M)) {
	for _, p := range m.picks {
		r.Replay += digits[p : p+1]
	}
	if m.flaw {
		return
	}
	m.retire() // raceOn must find recording as raceOff has found it
	m.script, m.recording = append([]byte{}, m.picks...), true
	m.execute(body)
	if m.flaw {
		r.Failure += "\n" + notDeterministic
	}
	r.Trace = m.table()
}

const digits = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_"

func parse(replay string) []byte {
	script := []byte{}
	for _, c := range replay {
		script = append(script, byte(strings.IndexRune(digits, c))) // 255: fits no body
	}
	return script
}
