// Package runner runs a package's benchmarks in rounds.
//
// A round runs every benchmark once, for a short time. Ten rounds of 50 ms
// tell more than one run of 500 ms: whatever disturbs the machine for a while
// then touches all implementations alike, and shows as a wide interval instead
// of as a difference. Each implementation in each top-level benchmark has a
// process of its own, so that no heap is inherited, and their order changes
// from round to round, so that no place is favoured.
package runner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"
)

// Binary is a compiled test binary and the folder that it must run in.
type Binary struct {
	path string
	dir  string
	temp string // removed by Remove; empty if the binary is not ours

	start func(context.Context, pass, func(line string)) error
	now   func() time.Time
}

// at returns the binary at path, to be run in dir.
func at(path, dir string) *Binary {
	b := &Binary{path: path, dir: dir, now: time.Now}
	b.start = b.run
	return b
}

// Build compiles the benchmarks of the package in folder dir once.
func Build(ctx context.Context, dir string) (*Binary, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	temp, err := os.MkdirTemp("", "latchfree-bench-")
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	b := at(filepath.Join(temp, "bench.test"), abs)
	b.temp = temp
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-o", b.path, ".")
	cmd.Dir = abs
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Remove()
		return nil, fmt.Errorf("bench: building %s: %w\n%s", dir, err, bytes.TrimSpace(out))
	}
	if _, err := os.Stat(b.path); err != nil {
		b.Remove()
		return nil, fmt.Errorf("bench: %s has no test files", dir)
	}
	return b, nil
}

// Remove deletes the binary.
func (b *Binary) Remove() {
	if b.temp != "" {
		os.RemoveAll(b.temp)
	}
}

// ErrNone says that there is nothing to run.
var ErrNone = errors.New("no benchmark")

// Calibrate runs every selected benchmark once at one CPU count. It finds
// names, broken benchmarks and what each costs. The budget is used since began.
func (b *Binary) Calibrate(ctx context.Context, p Plan, began time.Time) (*Calibration, error) {
	c := &Calibration{}
	last := b.now()
	// One CPU, because names then carry no suffix.
	all := pass{bench: p.Bench, skipTops: p.SkipTops, skip: p.Skip, benchTime: calibrationTime, cpus: []int{1}}
	err := b.start(ctx, all, func(line string) {
		if isHeader(line) {
			c.Header = append(c.Header, line)
			return
		}
		if r, ok := parseResult(line); ok {
			now := b.now()
			c.add(r, now.Sub(last))
			last = now
		}
	})
	if err != nil {
		return nil, err
	}
	if len(c.Tops) == 0 {
		return nil, fmt.Errorf("bench: %w in %s matches %q", ErrNone, filepath.Base(b.dir), p.Bench)
	}
	c.Took = b.now().Sub(began)
	return c, nil
}

// Rounds runs the plan and writes result lines to raw, a whole round at a
// time, and returns the number of rounds written. It stops early once
// MinRounds are done and the next one would exceed the budget.
func (b *Binary) Rounds(ctx context.Context, p Plan, c *Calibration, raw io.Writer, progress *Progress) (int, error) {
	start := b.now()
	began := start
	progress.begin(p.Rounds, c.Leaves()*len(p.CPUs))
	for round := range p.Rounds {
		if round > 0 {
			now := b.now()
			took, left := now.Sub(began), p.Budget-c.Took-now.Sub(start)
			began = now
			samples := p.BenchTime
			p = p.refit(took, p.Rounds-round, left, c)
			took -= sampled(samples-p.BenchTime) * time.Duration(c.Leaves()*len(p.CPUs))
			if round >= MinRounds && took > left {
				return round, nil
			}
		}
		lines, err := b.round(ctx, p, c, round, progress)
		if err != nil {
			return round, err
		}
		if _, err := raw.Write(lines); err != nil {
			return round, fmt.Errorf("bench: %w", err)
		}
		progress.endRound(round + 1)
	}
	return p.Rounds, nil
}

func (b *Binary) round(ctx context.Context, p Plan, c *Calibration, round int, progress *Progress) ([]byte, error) {
	var lines bytes.Buffer
	// The first round keeps the order of the source, in which readers of the
	// file will list benchmarks. Seeds make two runs use the same orders. What
	// is compared with each other stays together.
	r := rand.New(rand.NewPCG(uint64(round), 0))
	for _, top := range shuffled(c.Tops, r, round) {
		for _, unit := range shuffled(top.Units, r, round) {
			results, err := b.unit(ctx, p, unit, func() { progress.step(top.Name) })
			if err != nil {
				return nil, err
			}
			if want := len(unit.Leaves) * len(p.CPUs); len(results) != want {
				return nil, fmt.Errorf("bench: %s gave %d results for impl=%s, want %d: its sub-benchmarks must not depend on GOMAXPROCS",
					top.Name, len(results), unit.Impl, want)
			}
			for _, r := range results {
				lines.WriteString(r.line + "\n")
			}
		}
	}
	return lines.Bytes(), nil
}

// unit runs a unit once, and what was cut short again.
func (b *Binary) unit(ctx context.Context, p Plan, unit *Unit, step func()) ([]result, error) {
	results, err := b.results(ctx, pass{leaves: unit.Leaves, benchTime: p.BenchTime, cpus: p.CPUs}, step)
	if err != nil {
		return nil, err
	}
	for i, r := range results {
		leaf, cpus := unit.leaf(r.name)
		if leaf == nil {
			return nil, fmt.Errorf("bench: %s is not among what the calibration found", r.name)
		}
		for try := 1; try < tries && leaf.cutShort(r, p.BenchTime); try++ {
			again, err := b.results(ctx, pass{leaves: []*Leaf{leaf}, benchTime: p.BenchTime, cpus: []int{cpus}}, func() {})
			if err != nil {
				return nil, err
			}
			if len(again) == 1 {
				r = again[0]
			}
		}
		leaf.note(r, p.BenchTime)
		results[i] = r
	}
	return results, nil
}

// results collects the results of one process.
func (b *Binary) results(ctx context.Context, p pass, step func()) ([]result, error) {
	var all []result
	err := b.start(ctx, p, func(line string) {
		if r, ok := parseResult(line); ok {
			all = append(all, r)
			step()
		}
	})
	return all, err
}

// shuffled returns the elements in a random order, except in round 0.
func shuffled[T any](all []T, r *rand.Rand, round int) []T {
	all = slices.Clone(all)
	if round > 0 {
		r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	}
	return all
}

// warm lets what the heap gives back to the system be used again without a page
// fault: short runs would be charged for that, as for the first use of a page.
const warm = "madvdontneed=0,"

// run starts the binary and hands over its output line by line.
func (b *Binary) run(ctx context.Context, p pass, line func(string)) error {
	cmd := exec.CommandContext(ctx, b.path, p.args()...)
	cmd.Dir = b.dir
	cmd.Env = append(os.Environ(), "GODEBUG="+warm+os.Getenv("GODEBUG"))
	out := &lineWriter{line: line}
	cmd.Stdout, cmd.Stderr = out, out
	err := cmd.Run()
	out.flush()
	if cause := context.Cause(ctx); cause != nil {
		return fmt.Errorf("bench: stopped: %w", cause)
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return failure(out.all.String(), exit)
	}
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	return nil
}
