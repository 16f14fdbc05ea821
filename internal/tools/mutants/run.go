package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/latchfree/latchfree/internal/tools/mutants/broken"
)

// ending is how a run of tests ended.
type ending int

const (
	passed    ending = iota
	failed           // a test failed, or the program crashed
	timedOut         // they took far longer than without the mutant, whatever else the machine did
	exhausted        // they took too much memory
	exploded         // the model checker found more executions than it may try
	stopped          // they did not start, or a signal from elsewhere ended them
	slow             // they took longer than they may, and the machine may be why
)

func (e ending) String() string {
	return [...]string{"passed", "failed", "timed out", "memory", "exploded", "stopped", "slow"}[e]
}

// result is what came of a run of tests.
type result struct {
	how    ending
	test   string // that failed, or ran last
	output string
	peak   int64 // bytes resident, as far as it was looked at
}

// run runs tests that a pattern selects, for no longer than timeout and in no
// more memory than that.
func (b *baseline) run(g *toolchain, p program, tests string, timeout time.Duration, memory int64) result {
	// The test's own alarm comes first: it says what was running.
	ctx, cancel := context.WithTimeout(context.Background(), timeout+10*time.Second)
	defer cancel()
	args := append([]string{"-test.run=" + tests, "-test.v", "-test.failfast", "-test.timeout=" + timeout.String()}, b.args...)
	if len(p.skip) > 0 {
		args = append(args, "-test.skip="+pattern(p.skip))
	}
	cmd := exec.CommandContext(ctx, p.binary, args...)
	cmd.Dir = filepath.Join(g.root, filepath.FromSlash(b.dir))
	cmd.Env = append(append(os.Environ(), b.env...), broken.Choice+"="+strconv.Itoa(p.chosen), broken.Trace+"="+p.trace)
	out := &tail{most: 1 << 20}
	cmd.Stdout, cmd.Stderr = out, out
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		return result{how: stopped, output: err.Error()}
	}
	done := make(chan struct{})
	peak := make(chan int64)
	go func() { peak <- watch(cmd.Process.Pid, memory, done, cancel) }()
	err := cmd.Wait()
	close(done)
	r := result{output: out.String(), peak: <-peak}
	switch {
	case r.peak > memory:
		r.how = exhausted
	case err == nil || outgrown(r.output):
		return r
	case ctx.Err() != nil || errors.Is(err, exec.ErrWaitDelay) || strings.Contains(r.output, "panic: test timed out after"):
		r.how = timedOut
	case strings.Contains(r.output, "not everything was explored"):
		r.how = exploded
	case cmd.ProcessState.ExitCode() < 0: // a Go program that crashes exits with 2
		r.how = stopped
	default:
		r.how = failed
	}
	r.test = culprit(r.output)
	return r
}

// watch cancels the process when it is too large. It returns how large the
// process was at most.
func watch(pid int, most int64, done chan struct{}, cancel func()) (peak int64) {
	for {
		select {
		case <-done:
			return peak
		case <-time.After(100 * time.Millisecond):
			if peak = max(peak, resident(pid)); peak > most {
				cancel()
				return peak
			}
		}
	}
}

var rssLine = regexp.MustCompile(`(?m)^VmRSS:\s*(\d+) kB$`)

// resident returns the memory of a process, or 0 where there is no /proc.
func resident(pid int) int64 {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0
	}
	if line := rssLine.FindSubmatch(text); line != nil {
		kb, _ := strconv.ParseInt(string(line[1]), 10, 64)
		return kb << 10
	}
	return 0
}

var (
	failLine = regexp.MustCompile(`(?m)^ *--- FAIL: (\S+) `)
	runLine  = regexp.MustCompile(`(?m)^=== (?:RUN|CONT|NAME) +(\S+)$`)
)

// outgrown reports whether all tests have passed, and the model checker only says that an exploration, which
// MC_MOST cut short, has more executions than the package's CHECKS.md says: steps that come in another order
// are no failure.
func outgrown(output string) bool {
	return strings.Contains(output, "\nPASS\nmc: ") && strings.Contains(output, "has more executions than the page says") && !failLine.MatchString(output)
}

// culprit returns the test that failed first, or that ran last, without the
// deeper subtests.
func culprit(output string) string {
	name := ""
	if all := failLine.FindAllStringSubmatch(output, -1); all != nil {
		for _, line := range all {
			if strings.HasPrefix(line[1], name) { // a parent's line comes before its subtests'
				name = line[1]
			}
		}
	} else if all := runLine.FindAllStringSubmatch(output, -1); all != nil {
		name = all[len(all)-1][1]
	}
	if parts := strings.SplitN(name, "/", 3); len(parts) > 2 {
		return parts[0] + "/" + parts[1]
	}
	return name
}

// tail keeps the last bytes written to it.
type tail struct {
	most int
	bytes.Buffer
}

func (t *tail) Write(p []byte) (int, error) {
	n := len(p)
	if t.Len()+n > 2*t.most {
		kept := bytes.Clone(t.Bytes()[max(0, t.Len()-t.most):])
		t.Reset()
		t.Buffer.Write(kept)
	}
	t.Buffer.Write(p[max(0, n-t.most):])
	return n, nil
}
