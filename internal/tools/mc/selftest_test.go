//go:build modelcheck

package mc_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/latchfree/latchfree/internal/tools/mc"
)

// campaign is MC_PROGRAMS, or 1: try so many times as many programs, and larger
// ones.
var campaign = func() uint64 {
	n, _ := strconv.ParseUint(os.Getenv("MC_PROGRAMS"), 10, 16)
	return max(n, 1)
}()

// programs is how many to try: under the race detector, which is about races
// in the checker there, a part.
func programs(n uint64) uint64 {
	n *= campaign
	if underRace {
		return n / 5
	}
	return n
}

var bruteForce = mc.Config{Mode: mc.Bounded, Preemptions: mc.Unbounded, MaxSchedules: int(1000 * min(campaign, 10))}

// truth is what brute force says of a program.
type truth struct {
	program [][]action
	want    map[string]bool
	result  mc.Result
}

var truths = map[string]*truth{}

// truthOf returns what brute force says of a random program, which two tests ask.
func (p *palette) truthOf(seed uint64) *truth {
	id := fmt.Sprint(p.name, seed)
	known := truths[id]
	if known == nil {
		known = &truth{program: randomProgram(seed, len(p.actions))}
		known.want, known.result = outcomes(bruteForce, p.actions, known.program)
		truths[id] = known
	}
	return known
}

// The reduction reaches every outcome that brute force reaches, and no other.
func TestReductionIsSound(t *testing.T) {
	for _, p := range palettes {
		t.Run(p.name, func(t *testing.T) {
			compared, all, reduced, redundant := 0, 0, 0, 0
			for seed := range programs(200) {
				truth := p.truthOf(seed)
				program, want, a := truth.program, truth.want, truth.result
				if a.Failure != "" {
					t.Fatalf("seed %d: %v: %v %s", seed, program, a, a.Failure)
				}
				if !a.Complete {
					continue // too large
				}
				got, b := outcomes(mc.Config{}, p.actions, program)
				if !b.Complete || !maps.Equal(got, want) {
					t.Errorf("seed %d: %v\nbrute force: %v %s\nreduced: %v %q %s", seed, program,
						a, sorted(want), b, b.Failure, sorted(got))
				}
				compared, all, reduced, redundant = compared+1, all+a.Schedules, reduced+b.Schedules, redundant+b.Redundant
			}
			if compared < 20 {
				t.Errorf("only %d programs were small enough", compared)
			}
			t.Logf("%d programs: brute force %d executions, reduced %d, of which %d redundant", compared, all, reduced, redundant)
		})
	}
}

// The same where a thread stops for ever.
func TestReductionIsSoundWithStalls(t *testing.T) {
	compared, all, reduced := 0, 0, 0
	for seed := range programs(60) {
		p := palettes[seed%uint64(len(palettes))]
		program := p.truthOf(seed).program
		for after := range 4 {
			want, a := outcomes(mc.Stalled(bruteForce, after), p.actions, program)
			if !a.Complete {
				continue // too large
			}
			got, b := outcomes(mc.Stalled(mc.Config{}, after), p.actions, program)
			if a.Failure != "" || b.Failure != "" || !b.Complete || !maps.Equal(got, want) {
				t.Errorf("seed %d after %d: %v\nbrute force: %v %q %s\nreduced: %v %q %s", seed, after, program,
					a, a.Failure, sorted(want), b, b.Failure, sorted(got))
			}
			compared, all, reduced = compared+1, all+a.Schedules, reduced+b.Schedules
		}
	}
	t.Logf("%d stalls: brute force %d executions, reduced %d", compared, all, reduced)
	if compared < 50 && !underRace {
		t.Errorf("only %d stalls were small enough", compared)
	}
}

// The reduction finds a deadlock exactly where brute force does.
func TestReductionFindsDeadlocks(t *testing.T) {
	good, bad := 0, 0
	for seed := range programs(400) {
		program := randomProgram(seed, len(risky))
		_, a := outcomes(bruteForce, risky, program)
		if !a.Complete && a.Failure == "" {
			continue // too large
		}
		_, b := outcomes(mc.Config{}, risky, program)
		if a.Failure != b.Failure || !b.Complete && b.Failure == "" {
			t.Errorf("seed %d: %v: brute force %v %q, reduced %v %q", seed, program, a, a.Failure, b, b.Failure)
		}
		if a.Failure == "" {
			good++
		} else {
			bad++
		}
	}
	t.Logf("%d programs end, %d may wait for ever", good, bad)
	if good < 10 || bad < 10 {
		t.Error("too few of one kind")
	}
}

// The first of these tests can fail: it tells every reduction that is broken on purpose.
func TestBrokenReductionIsCaught(t *testing.T) {
	left := maps.Clone(mc.Flaws)
	for seed := uint64(0); seed < 500 && len(left) > 0; seed++ {
		for _, p := range palettes {
			truth := p.truthOf(seed)
			program, want := truth.program, truth.want
			if !truth.result.Complete {
				continue // too large
			}
			for name, breakIt := range left {
				cfg := mc.Config{}
				breakIt(&cfg)
				if got, _ := outcomes(cfg, p.actions, program); !maps.Equal(got, want) {
					t.Logf("what %s is caught by program %d of %s", name, seed, p.name)
					delete(left, name)
				}
			}
		}
	}
	for name := range left {
		t.Errorf("what %s is not caught", name)
	}
}

func sorted(set map[string]bool) string {
	return "\n\t" + strings.Join(slices.Sorted(maps.Keys(set)), "\n\t")
}
