// Fuzzall searches with every fuzz target of the repository, one after the other: it
// finds the targets itself, goes on after one that fails, and ends with a table.
//
//	go run ./internal/tools/fuzzall [-time 30s] [-run regexp]
//
// An input that fails is written to testdata/fuzz in the folder of its package, which the
// table names. Commit it with the fix.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"text/tabwriter"
	"time"
)

func main() {
	fuzztime := flag.Duration("time", 30*time.Second, "how long each target searches")
	pattern := flag.String("run", "", "only the targets that match `regexp`")
	flag.Parse()
	if err := run(os.Stdout, *fuzztime, *pattern); err != nil {
		fmt.Fprintln(os.Stderr, "fuzzall:", err)
		os.Exit(1)
	}
}

// run searches with the targets below the current directory that match pattern.
func run(out io.Writer, fuzztime time.Duration, pattern string) error {
	match, err := regexp.Compile(pattern)
	if err != nil {
		return err
	}
	found, err := targets(".", match)
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return errors.New("no target matches")
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprint(table, "target\tpackage\texecs\tnew\tseconds\tresult\n")
	failed := 0
	for i, t := range found {
		fmt.Fprintf(out, "== %s for %v, %d of %d\n", t.name, fuzztime, i+1, len(found))
		begun := time.Now()
		r := t.search(out, fuzztime)
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%.0f\t%s\n", t.name, filepath.ToSlash(filepath.Join(t.module, t.pkg)), r.execs, r.interesting, time.Since(begun).Seconds(), r.verdict)
		if r.failed {
			failed++
		}
	}
	fmt.Fprintln(out)
	table.Flush()
	if failed > 0 {
		return fmt.Errorf("%d of %d targets failed", failed, len(found))
	}
	return nil
}

// search runs go test -fuzz. It copies what that prints to out as it comes.
func (t target) search(out io.Writer, fuzztime time.Duration) result {
	var printed bytes.Buffer
	cmd := exec.Command("go", t.args(fuzztime)...)
	cmd.Dir = t.module
	cmd.Stdout = io.MultiWriter(out, &printed)
	cmd.Stderr = cmd.Stdout
	return judge(cmd.Run(), printed.String())
}

// args returns the arguments of the go command. Short minimizing leaves the time to the
// search.
func (t target) args(fuzztime time.Duration) []string {
	args := []string{"test", "-vet=off", "-run", "^$", "-fuzz", "^" + t.name + "$", "-fuzztime", fuzztime.String(), "-fuzzminimizetime", "10x"}
	if t.tags != "" {
		args = append(args, "-tags", t.tags)
	}
	return append(args, t.pkg)
}

// result is the outcome of the search of one target.
type result struct {
	verdict            string
	failed             bool
	execs, interesting string // as printed last, or "-"
}

var (
	progress = regexp.MustCompile(`execs: (\d+) .*new interesting: (\d+)`)
	replayed = regexp.MustCompile(`gathering baseline coverage: [1-9]`)
	input    = regexp.MustCompile(`Failing input written to (\S+)`)
	deadline = regexp.MustCompile(`(?m)^--- FAIL: \w+ \([0-9.]+s\)\n    context deadline exceeded\nFAIL$`)
)

// judge makes a result of the error of the go command and what it printed.
//
// go test -fuzz first runs what earlier searches have kept. If that takes all of the
// time and passes, nothing was searched, and nothing failed.
//
// Before Go 1.27 a search that ends in time may fail with "context deadline exceeded",
// although no input failed: go.dev/issue/75804. That is no finding.
func judge(err error, printed string) result {
	r := result{verdict: "ok", execs: "-", interesting: "-"}
	if all := progress.FindAllStringSubmatch(printed, -1); all != nil {
		last := all[len(all)-1]
		r.execs, r.interesting = last[1], last[2]
	}
	switch where := input.FindStringSubmatch(printed); {
	case where != nil:
		r.verdict, r.failed = "FAILED with "+where[1], true
	case err == nil && r.execs == "-" && replayed.MatchString(printed):
		r.verdict = "ok (its corpus took the time)"
	case err == nil && r.execs == "-":
		r.verdict, r.failed = "FAILED: nothing was searched", true
	case err == nil:
	case deadline.MatchString(printed):
		r.verdict = "ok (stopped late, go.dev/issue/75804)"
	default:
		r.verdict, r.failed = fmt.Sprintf("FAILED: %v", err), true
	}
	return r
}
