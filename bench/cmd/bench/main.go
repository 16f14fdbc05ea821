// Command bench runs the benchmarks in interleaved rounds, prints a summary
// and writes a report.
//
//	go run ./bench/cmd/bench -quick
//	go run ./bench/cmd/bench -bench Registry -cpu 1,2,8
//	go run ./bench/cmd/bench -from bench/results/20260102T030405Z.txt
//
// See bench/README.md for the method and its limits.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/latchfree/latchfree/bench/internal/report"
	"github.com/latchfree/latchfree/bench/internal/runner"
)

// big matches parameters of 10,000 and more, whose preparation would take
// most of a quick run.
const big = `=(\d{5,}|\d{2,}k|\d+M)$`

// fewer matches the implementations that a quick run leaves out: all but locks.
const fewer = `^impl=(atomics|copy|list|oncevalues|report|syncmap|xsync)$`

// quickRounds, of headline cases, is the least with which the highest and the lowest sample lie outside
// of the median's interval. The budget may end a run sooner.
const quickRounds = 9

// quickBudget leaves a quick run time to build and to report within a minute.
const quickBudget = 45 * time.Second

type options struct {
	pkg      string
	out      string
	from     string
	baseline string
	quick    bool
	readme   string
	tables   bool
	plan     runner.Plan
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	opts, err := parse(os.Args[1:], os.Stderr)
	if err == flag.ErrHelp {
		return
	}
	if err == nil {
		err = run(ctx, opts, os.Args[1:], os.Stdout, os.Stderr)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		stop()
		os.Exit(1)
	}
}

// parse reads the command line.
func parse(args []string, usage io.Writer) (options, error) {
	var o options
	var cpus string
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(usage)
	flags.StringVar(&o.pkg, "package", "./bench", "`folder` of the benchmarks; it may belong to another module")
	flags.StringVar(&o.out, "out", "", "`folder` for the raw file and report.html (default bench/results, or a folder in it)")
	flags.StringVar(&o.from, "from", "", "make the report of this raw `file` and run nothing")
	flags.StringVar(&o.baseline, "baseline", report.Baseline, "`implementation` that speed-ups are plotted against")
	flags.StringVar(&o.readme, "readme", "", "replace what stands between the bench marks of this Markdown `file`, and the pictures in docs beside it")
	flags.BoolVar(&o.quick, "quick", false, "a first impression: the headline cases only, or what -bench selects without big parameters")
	flags.BoolVar(&o.tables, "tables", false, "print benchstat's tables too")
	flags.StringVar(&o.plan.Bench, "bench", ".", "run benchmarks that match `regexp`, as go test does")
	flags.StringVar(&o.plan.Skip, "skip", "", "leave out what has an element like key=value that matches `regexp`")
	flags.StringVar(&cpus, "cpu", "", "comma-separated `list` of GOMAXPROCS values (default 1,2 and all)")
	flags.IntVar(&o.plan.Rounds, "rounds", 10, "samples of each benchmark, at least 6")
	flags.DurationVar(&o.plan.BenchTime, "benchtime", 0, "length of one sample (default: what fits the budget)")
	flags.DurationVar(&o.plan.Budget, "budget", 310*time.Second, "time for all until the last round, of which there are at least 6; what is too costly for it is left out")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("bench: unexpected argument %q", flags.Arg(0))
	}
	if o.quick {
		given := make(map[string]bool)
		flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
		if !given["rounds"] {
			o.plan.Rounds = quickRounds
		}
		if !given["budget"] {
			o.plan.Budget = quickBudget
		}
		if !given["skip"] {
			o.plan.Skip = big + "|" + fewer
		}
		if !given["cpu"] {
			cpus = strconv.Itoa(runtime.NumCPU())
		}
	}
	if o.out == "" {
		o.out = defaultOut(o)
	}
	var err error
	if o.plan.CPUs, err = runner.ParseCPUs(cpus); err != nil {
		return o, err
	}
	return o, o.plan.Validate()
}

// defaultOut keeps the reports of different packages apart, and that of a raw
// file beside it.
func defaultOut(o options) string {
	if o.from != "" {
		return filepath.Dir(o.from)
	}
	out := filepath.Join("bench", "results")
	if name := filepath.Base(o.pkg); name != "bench" {
		out = filepath.Join(out, name)
	}
	return out
}

func run(ctx context.Context, o options, args []string, stdout, stderr io.Writer) error {
	raw := o.from
	if raw == "" {
		var err error
		if raw, err = measure(ctx, o, args, stderr); err != nil {
			return err
		}
	}
	return publish(ctx, o, raw, stdout)
}

// lookAround is how long the machine is watched before anything is done.
const lookAround = 500 * time.Millisecond

// measure runs the benchmarks and returns the path of the raw file.
func measure(ctx context.Context, o options, args []string, stderr io.Writer) (string, error) {
	began := time.Now()
	fmt.Fprintln(stderr, "bench: looking at the machine")
	before, known := runner.Queue(ctx, lookAround)
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	state := runner.State()
	fmt.Fprintf(stderr, "bench: building %s\n", o.pkg)
	b, err := runner.Build(ctx, o.pkg)
	if err != nil {
		return "", err
	}
	defer b.Remove()
	if err := os.MkdirAll(o.out, 0o777); err != nil {
		return "", fmt.Errorf("bench: %w", err)
	}
	now := time.Now()
	path := filepath.Join(o.out, now.UTC().Format("20060102T150405Z")+".txt")
	f, err := os.Create(path)
	if err != nil {
		return "", fmt.Errorf("bench: %w", err)
	}
	defer f.Close()
	header := func(c *runner.Calibration) error {
		command := strings.Join(append([]string{"go run ./bench/cmd/bench"}, quote(args)...), " ")
		if err := runner.WriteHeader(ctx, f, b, c, o.plan, command, now); err != nil {
			return err
		}
		if known {
			fmt.Fprintf(f, "queue-before: %.1f\n", before)
		}
		_, err := fmt.Fprintf(f, "state: %s\n\n", state)
		return err
	}
	measured := 0
	others := runner.WatchOthers()
	for _, part := range parts(o) {
		err := part.measure(ctx, b, others.Noted(f), stderr, began, header)
		switch {
		case errors.Is(err, runner.ErrNone):
			continue
		case err != nil:
			return "", fmt.Errorf("%w\nbench: what was measured is in %s", err, path)
		}
		header = func(*runner.Calibration) error { return nil } // once
		measured++
	}
	if err := f.Close(); err != nil {
		return "", fmt.Errorf("bench: %w", err)
	}
	if measured == 0 {
		os.Remove(path)
		return "", fmt.Errorf("bench: %w in %s matches %q", runner.ErrNone, o.pkg, o.plan.Bench)
	}
	return path, nil
}

// publish prints the tables and the summary and writes the report.
func publish(ctx context.Context, o options, raw string, stdout io.Writer) error {
	in, err := os.Open(raw)
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	defer in.Close()
	r, err := report.Read(in, raw, o.baseline)
	if err != nil {
		return err
	}
	if o.tables {
		if err := tables(ctx, r, raw, stdout); err != nil {
			return err
		}
	}
	if err := r.WriteText(stdout); err != nil {
		return err
	}
	if err := os.MkdirAll(o.out, 0o777); err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	path := filepath.Join(o.out, "report.html")
	if err := create(path, r.WriteHTML); err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "\nraw results  %s\nreport       %s\n", raw, path)
	if err != nil || !r.HasBaseline() {
		return err
	}
	if err := pictures(r, o.out, stdout); err != nil || o.readme == "" {
		return err
	}
	page, err := os.ReadFile(o.readme)
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	replaced, err := r.ReplaceReadme(string(page))
	if err != nil {
		return err
	}
	if err := os.WriteFile(o.readme, []byte(replaced), 0o666); err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	return pictures(r, filepath.Join(filepath.Dir(o.readme), "docs"), stdout)
}

// pictures draws what there is into a folder.
func pictures(r *report.Report, folder string, stdout io.Writer) error {
	all := map[string]func(io.Writer, report.Theme) error{"speed": r.WritePicture}
	if r.HasTail() {
		all["tail"] = r.WriteTail
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		for paper, theme := range map[string]report.Theme{"light": report.Light, "dark": report.Dark} {
			if err := create(filepath.Join(folder, name+"-"+paper+".svg"), func(w io.Writer) error { return all[name](w, theme) }); err != nil {
				return err
			}
		}
		if _, err := fmt.Fprintf(stdout, "picture      %s, %s-dark.svg\n", filepath.Join(folder, name+"-light.svg"), name); err != nil {
			return err
		}
	}
	return nil
}

// create writes a file with what write writes.
func create(path string, write func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	defer f.Close()
	if err := write(f); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	return nil
}

// quote makes arguments safe to paste into a shell.
func quote(args []string) []string {
	quoted := make([]string, len(args))
	for i, arg := range args {
		quoted[i] = arg
		if arg == "" || strings.ContainsAny(arg, " \t\n\"'`$&|;<>()[]{}*?!#~\\") {
			quoted[i] = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
		}
	}
	return quoted
}
