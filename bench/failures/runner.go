package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// childKey is the environment variable that makes this program run one case
// with one cache, print the outcome and exit.
const childKey = "FAILURES_CHILD"

// job is one case with one cache.
type job struct {
	c *testCase
	p *peer
}

func (j job) String() string { return j.c.name + "/" + j.p.name }

// runner runs jobs, each in a process of its own.
type runner struct {
	command  []string // this program
	deadline time.Duration
	parallel int
	progress io.Writer
}

// run returns the outcomes of jobs. It fails if a case itself does, which says
// nothing about a cache.
func (r runner) run(ctx context.Context, jobs []job) (map[job]outcome, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var (
		mu      sync.Mutex
		results = make(map[job]outcome)
		wg      sync.WaitGroup
		next    = make(chan job)
	)
	for range r.parallel {
		wg.Go(func() {
			for j := range next {
				o, err := r.observe(ctx, j.String())
				mu.Lock()
				if err != nil {
					cancel(fmt.Errorf("%v: %w", j, err))
				} else {
					results[j] = o
					fmt.Fprintf(r.progress, "%-40v %v\n", j, o)
				}
				mu.Unlock()
			}
		})
	}
	for _, j := range jobs {
		if ctx.Err() == nil {
			next <- j
		}
	}
	close(next)
	wg.Wait()
	return results, context.Cause(ctx)
}

// observe runs one child and says how it ended.
func (r runner) observe(ctx context.Context, name string) (outcome, error) {
	limited, cancel := context.WithTimeout(ctx, r.deadline)
	defer cancel()
	cmd := exec.CommandContext(limited, r.command[0], r.command[1:]...)
	cmd.Env = append(os.Environ(), childKey+"="+name, "GOTRACEBACK=single")
	cmd.WaitDelay = time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &head{&stderr}
	err := cmd.Run()
	if ctx.Err() != nil {
		return outcome{}, ctx.Err()
	}
	if limited.Err() != nil {
		return outcome{Status: hang, Note: fmt.Sprintf("the process still runs after %v", r.deadline)}, nil
	}
	return classify(err, stdout.Bytes(), stderr.String())
}

// exitBroken is the exit code of a child whose case is broken.
const exitBroken = 3

// classify says how a child ended, from its exit and what it printed. An
// uncaught panic and a fatal error of the runtime exit with code 2.
func classify(exit error, stdout []byte, stderr string) (outcome, error) {
	if exit == nil {
		var o outcome
		if err := json.Unmarshal(stdout, &o); err != nil || o.Status == "" {
			return o, fmt.Errorf("the child printed no outcome: %q", stdout)
		}
		return o, nil
	}
	var failed *exec.ExitError
	if !errors.As(exit, &failed) || failed.ExitCode() == exitBroken {
		return outcome{}, fmt.Errorf("%w: %s", exit, stderr)
	}
	for line := range strings.Lines(stderr) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "fatal error: all goroutines are asleep") {
			return outcome{Status: hang, Note: "all goroutines are asleep"}, nil
		}
		if strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") {
			return outcome{Status: crash, Note: "the process dies: " + line}, nil
		}
	}
	return outcome{}, fmt.Errorf("%w: %s", exit, stderr)
}

// head keeps the first part of what is written: a child may print for a minute.
type head struct{ *bytes.Buffer }

func (h *head) Write(p []byte) (int, error) {
	if room := 1<<20 - h.Len(); room > 0 {
		h.Buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

// child runs the case and cache of this name, and returns the exit code.
func child(name string, stdout, stderr io.Writer) int {
	caseName, peerName, _ := strings.Cut(name, "/")
	for _, c := range cases() {
		for _, p := range peers {
			if c.name != caseName || p.name != peerName {
				continue
			}
			return report(&trial{peer: p, patience: patience}, c, stdout, stderr)
		}
	}
	fmt.Fprintf(stderr, "no case %q\n", name)
	return exitBroken
}

// report runs a case and prints its outcome.
func report(t *trial, c *testCase, stdout, stderr io.Writer) (code int) {
	defer func() {
		if v := recover(); v != nil {
			fmt.Fprintf(stderr, "the case panicked: %v\n", v)
			code = exitBroken
		}
	}()
	if err := json.NewEncoder(stdout).Encode(t.run(c)); err != nil {
		fmt.Fprintln(stderr, err)
		return exitBroken
	}
	return 0
}
