// Command failures runs what goes wrong in caches that create their values: a
// creation that panics, a caller that leaves, a deletion at the wrong moment.
// It prints which cache does what as a table.
//
//	go run . -o ../../oncecache/COMPARISON.md
//	go run . -case 'panic|goexit' -cache otter
//
// Each case runs with each cache in a process of its own, which is given a
// minute. So what hangs, crashes or never stops is observed like everything
// else. README.md has more.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"time"
)

func main() {
	if name := os.Getenv(childKey); name != "" {
		os.Exit(child(name, os.Stdout, os.Stderr))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		stop()
		if err != flag.ErrHelp {
			fmt.Fprintln(os.Stderr, "failures:", err)
		}
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("failures", flag.ContinueOnError)
	flags.SetOutput(stderr)
	out := flags.String("o", "", "write the table to `file` instead of printing it")
	onlyCase := flags.String("case", "", "only cases whose name matches `regexp`")
	onlyCache := flags.String("cache", "", "only caches whose name matches `regexp`")
	verbose := flags.Bool("v", false, "print each outcome as it comes")
	parallel := flags.Int("parallel", min(2, runtime.GOMAXPROCS(0)), "how many `processes` at a time")
	deadline := flags.Duration("deadline", time.Minute, "how long a process may take")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if *parallel < 1 {
		return fmt.Errorf("-parallel is %d", *parallel)
	}
	matchCase, err := regexp.Compile("(?i)" + *onlyCase)
	if err != nil {
		return err
	}
	matchCache, err := regexp.Compile("(?i)" + *onlyCache)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	var jobs []job
	for _, c := range cases() {
		for _, p := range peers {
			if matchCase.MatchString(c.name) && matchCache.MatchString(p.name) {
				jobs = append(jobs, job{c, p})
			}
		}
	}
	progress := io.Discard
	if *verbose {
		progress = stderr
	}
	r := runner{command: []string{self}, deadline: *deadline, parallel: *parallel, progress: progress}
	results, err := r.run(ctx, jobs)
	if err != nil {
		return err
	}
	page, err := format(results, versions())
	if err != nil {
		return err
	}
	if *out == "" {
		_, err = stdout.Write(page)
		return err
	}
	return os.WriteFile(*out, page, 0o644)
}
