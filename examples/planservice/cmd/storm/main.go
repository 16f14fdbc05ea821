// Command storm replays the four defect reports against a running service, and looks in the
// service's own audit trail for what was lost, doubled or misplaced. See README.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/latchfree/latchfree/examples/planservice/api"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "storm:", err)
		os.Exit(1)
	}
}

// run parses arguments, and prints the table of what came of each store. It fails if
// latchfree shows a defect.
func run(ctx context.Context, arguments []string, out, progress io.Writer) error {
	flags := flag.NewFlagSet("storm", flag.ContinueOnError)
	flags.SetOutput(progress)
	stores := flags.String("store", "all", "latchfree, naive, locked or all")
	duration := flags.Duration("duration", 12*time.Second, "how long each store is under load")
	clients := flags.Int("clients", 16, "concurrent clients")
	pause := flags.Duration("pause", 0, "how long the naive store stops between its steps; it yields if 0")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if flags.NArg() > 0 || *clients < 2 || *duration <= 0 {
		return errors.New("want no arguments, at least 2 clients, and a duration above 0")
	}
	names := []string{*stores}
	if *stores == "all" {
		names = []string{"naive", "locked", "latchfree"}
	}
	binary, remove, err := build(ctx)
	if err != nil {
		return err
	}
	defer remove()
	var results []result
	for _, store := range names {
		r, err := storm(ctx, binary, store, *clients, *duration, progress, "-pause", pause.String())
		if err != nil {
			return fmt.Errorf("%s: %w", store, err)
		}
		results = append(results, r)
	}
	print(out, results)
	for _, r := range results {
		if n := r.defects.sum(); r.store == "latchfree" && n > 0 {
			return fmt.Errorf("latchfree has %d defects", n)
		}
	}
	return nil
}

// result is what came of one store.
type result struct {
	store   string
	defects defects
	load    *load
	took    time.Duration
}

// storm replays all reports against one store. The service gets arguments too.
func storm(ctx context.Context, binary, store string, clients int, duration time.Duration, progress io.Writer, arguments ...string) (r result, err error) {
	s, err := start(ctx, binary, append(arguments, "-store", store)...)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	r = result{store: store, defects: defects{}, load: new(load)}
	if _, err := s.CreateAction(ctx, api.Action{Name: "count"}); err != nil {
		return r, err
	}
	if _, err := s.CreatePlan(ctx, api.Plan{Name: "storm", Actions: []string{"count"}, Strategies: []string{api.Direct}}); err != nil {
		return r, err
	}
	began := time.Now()
	for i, report := range reports {
		fmt.Fprintf(progress, "%s: %s (%d of %d)\n", store, report.name, i+1, len(reports))
		during, cancel := context.WithTimeout(ctx, duration/time.Duration(len(reports)))
		l := &storming{service: s, clients: clients, during: during, defects: r.defects, load: r.load}
		err := report.replay(ctx, l)
		cancel()
		if err != nil {
			return r, fmt.Errorf("%s: %w", report.name, err)
		}
	}
	r.took = time.Since(began)
	return r, nil
}

// reports are the defect reports, in the order in which they are replayed.
var reports = []struct {
	name   string
	replay func(ctx context.Context, l *storming) error
}{
	{"registry", replayRegistry},
	{"changesets", replayChangesets},
	{"breakers", replayBreakers},
	{"engines", replayEngines},
}

// defects counts what went wrong, by what it is.
type defects map[string]int

func (d defects) sum() (n int) {
	for _, v := range d {
		n += v
	}
	return n
}

// kinds are the defects in the order of the table.
var kinds = []string{
	"creations beside another", "updates lost",
	"changes misplaced", "changes lost", "changes doubled", "changes lost at apply", "changes refused",
	"failures lost", "second engines", "errors of engines",
}

// print writes a table in Markdown.
func print(out io.Writer, results []result) {
	w := tabwriter.NewWriter(out, 0, 0, 1, ' ', 0)
	defer w.Flush()
	row := func(name string, cell func(r result) string) {
		fmt.Fprintf(w, "| %s", name)
		for _, r := range results {
			fmt.Fprintf(w, "\t| %s", cell(r))
		}
		fmt.Fprintln(w, "\t|")
	}
	row("", func(r result) string { return r.store })
	fmt.Fprintln(w, "|---"+strings.Repeat("\t|--:", len(results))+"\t|")
	for _, kind := range kinds {
		row(kind, func(r result) string { return fmt.Sprint(r.defects[kind]) })
	}
	row("operations", func(r result) string { return fmt.Sprint(len(r.load.took)) })
	row("operations a second", func(r result) string { return fmt.Sprintf("%.0f", float64(len(r.load.took))/r.took.Seconds()) })
	for _, q := range []struct {
		name string
		part float64
	}{{"p50", 0.5}, {"p99", 0.99}, {"p99.9", 0.999}} {
		row(q.name, func(r result) string {
			slices.Sort(r.load.took)
			if len(r.load.took) == 0 {
				return ""
			}
			return r.load.took[int(q.part*float64(len(r.load.took)-1))].Round(10 * time.Microsecond).String()
		})
	}
}
