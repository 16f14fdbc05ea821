// Package runner runs a package's benchmarks in rounds.
//
// A round runs every benchmark once, for a short time. Ten rounds of 50 ms
// tell more than one run of 500 ms: whatever disturbs the machine for a while
// then touches all implementations alike, and shows as a wide interval instead
// of as a difference. Each top-level benchmark has a process of its own, so
// that no heap is inherited, and their order changes from round to round.
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
	"strings"
	"time"
)

// Binary is a compiled test binary and the folder that it must run in.
type Binary struct {
	path string
	dir  string
	temp string // removed by Remove; empty if the binary is not ours
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
	b := &Binary{path: filepath.Join(temp, "bench.test"), dir: abs, temp: temp}
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

// Calibration is what a first pass over all benchmarks learned. Its
// measurements are thrown away.
type Calibration struct {
	Tops   []Top         // in source order
	Header []string      // goos, goarch, pkg and cpu lines as the binary printed them
	Took   time.Duration // the pass, at one CPU count
}

// Top is a top-level benchmark and how many leaves below it were selected.
type Top struct {
	Name   string
	Leaves int
}

// Leaves returns the number of selected benchmarks.
func (c *Calibration) Leaves() int {
	n := 0
	for _, top := range c.Tops {
		n += top.Leaves
	}
	return n
}

func (c *Calibration) names() []string {
	names := make([]string, len(c.Tops))
	for i, top := range c.Tops {
		names[i] = top.Name
	}
	return names
}

// Calibrate runs every selected benchmark once at one CPU count. It finds
// names, broken benchmarks and the fixed cost of a pass.
func (b *Binary) Calibrate(ctx context.Context, p Plan) (*Calibration, error) {
	c := &Calibration{}
	start := time.Now()
	// One CPU, because names then carry no suffix.
	err := b.run(ctx, p.args("", nil, calibrationTime, []int{1}), func(line string) {
		if isHeader(line) {
			c.Header = append(c.Header, line)
			return
		}
		name, ok := resultName(line)
		if !ok {
			return
		}
		top, _, _ := strings.Cut(name, "/")
		i := slices.IndexFunc(c.Tops, func(t Top) bool { return t.Name == top })
		if i < 0 {
			i = len(c.Tops)
			c.Tops = append(c.Tops, Top{Name: top})
		}
		c.Tops[i].Leaves++
	})
	if err != nil {
		return nil, err
	}
	if len(c.Tops) == 0 {
		return nil, fmt.Errorf("bench: no benchmark in %s matches %q", filepath.Base(b.dir), p.Bench)
	}
	c.Took = time.Since(start)
	return c, nil
}

// Rounds runs the plan and writes result lines to raw, a whole round at a
// time, and returns the number of rounds written. It stops early once
// MinRounds are done and the next one would exceed the budget.
func (b *Binary) Rounds(ctx context.Context, p Plan, c *Calibration, raw io.Writer, progress *Progress) (int, error) {
	start := time.Now()
	progress.begin(p.Rounds, c.Leaves()*len(p.CPUs))
	for round := range p.Rounds {
		if round > 0 {
			spent := time.Since(start)
			mean := spent / time.Duration(round)
			left := p.Budget - c.Took - spent
			if round >= MinRounds && mean > left {
				return round, nil
			}
			p = p.refit(mean, p.Rounds-round, left)
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
	names := c.names()
	order := slices.Clone(c.Tops)
	// The first round keeps the order of the source, in which readers of the
	// file will list benchmarks. Seeds make two runs use the same orders.
	if round > 0 {
		r := rand.New(rand.NewPCG(uint64(round), 0))
		r.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	}
	for _, top := range order {
		got := 0
		err := b.run(ctx, p.args(top.Name, names, p.BenchTime, p.CPUs), func(line string) {
			if _, ok := resultName(line); ok {
				lines.WriteString(line + "\n")
				got++
				progress.step(top.Name)
			}
		})
		if err != nil {
			return nil, err
		}
		if want := top.Leaves * len(p.CPUs); got != want {
			return nil, fmt.Errorf("bench: %s gave %d results, want %d: its sub-benchmarks must not depend on GOMAXPROCS", top.Name, got, want)
		}
	}
	return lines.Bytes(), nil
}

// run starts the binary and hands over its output line by line.
func (b *Binary) run(ctx context.Context, args []string, line func(string)) error {
	cmd := exec.CommandContext(ctx, b.path, args...)
	cmd.Dir = b.dir
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
