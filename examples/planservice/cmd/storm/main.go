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
	"path/filepath"
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
// latchfree or the cluster shows a defect.
func run(ctx context.Context, arguments []string, out, progress io.Writer) error {
	flags := flag.NewFlagSet("storm", flag.ContinueOnError)
	flags.SetOutput(progress)
	stores := flags.String("store", "all", "latchfree, naive, locked, clustered, or all but the last")
	cluster := flags.Bool("cluster", false, "the same as -store clustered")
	duration := flags.Duration("duration", 14*time.Second, "how long each store is under load")
	clusterDuration := flags.Duration("cluster-duration", time.Minute, "the same for clustered, whose replicas are killed")
	clients := flags.Int("clients", 16, "concurrent clients")
	pause := flags.Duration("pause", 0, "how long the naive store stops between its steps; it yields if 0")
	nosync := flags.Bool("nosync", false, "clustered does not fsync")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if flags.NArg() > 0 || *clients < 2 || *duration <= 0 || *clusterDuration <= 0 {
		return errors.New("want no arguments, at least 2 clients, and durations above 0")
	}
	names := []string{*stores}
	switch {
	case *cluster:
		names = []string{"clustered"}
	case *stores == "all":
		names = []string{"naive", "locked", "latchfree"}
	}
	fmt.Fprintln(progress, "building the service, which takes a minute or two the first time")
	binary, remove, err := build(ctx)
	if err != nil {
		return err
	}
	defer remove()
	var results []result
	for _, store := range names {
		p := plan{store: store, clients: *clients, duration: *duration, arguments: []string{"-store", store, "-pause", pause.String()}}
		if store == "clustered" {
			p.duration, p.arguments = *clusterDuration, nil
			for _, report := range reports {
				p.kills = append(p.kills, report.name)
			}
			if *nosync {
				p.arguments = []string{"-nosync"}
			}
		}
		r, err := storm(ctx, binary, p, progress)
		if err != nil {
			return fmt.Errorf("%s: %w", store, err)
		}
		results = append(results, r)
	}
	print(out, results)
	fmt.Fprintf(out, "\n%s\n", finding(results))
	for _, r := range results {
		if n := r.defects.sum(); (r.store == "latchfree" || r.store == "clustered") && n > 0 {
			return fmt.Errorf("%s has %d defects", r.store, n)
		}
	}
	return nil
}

// plan is what is done to one store.
type plan struct {
	store     string
	clients   int
	duration  time.Duration
	kills     []string // reports in which a replica is killed
	arguments []string // of the service
}

// result is what came of one store.
type result struct {
	store   string
	defects defects
	load    *load
	outages *outages
	took    time.Duration
}

// storm replays all reports against one store, and compares the audit trail with what the
// clients were told.
func storm(ctx context.Context, binary string, p plan, progress io.Writer) (r result, err error) {
	// Each round of replayEngines opens a database.
	arguments, replicas, data := append(p.arguments, "-memory-databases", "1000000"), 1, ""
	reports := reports
	if p.store == "clustered" {
		if data, err = os.MkdirTemp("", "storm"); err != nil {
			return r, err
		}
		defer os.RemoveAll(data)
		arguments, replicas = append(arguments, "-cluster", "-data", data), 3
	} else {
		arguments = append(arguments, "-slow-open", slowOpen.String(), "-slow-apply", slowApply.String())
		reports = append(slices.Clip(reports), report{"stalls", replayStalls})
	}
	s, err := start(ctx, binary, replicas, arguments...)
	if err != nil {
		return r, err
	}
	stopped := false
	defer func() {
		if !stopped {
			err = errors.Join(err, s.stop())
		}
	}()
	r = result{store: p.store, defects: defects{}, load: new(load), outages: newOutages()}
	told := newReceipts()
	if err := prepare(ctx, s); err != nil {
		return r, err
	}
	began := time.Now()
	for i, report := range reports {
		fmt.Fprintf(progress, "%s: %s (%d of %d)\n", p.store, report.name, i+1, len(reports))
		during, cancel := context.WithTimeout(ctx, p.duration/time.Duration(len(reports)))
		l := &storming{service: s, clients: p.clients, told: told, phase: report.name, during: during, defects: r.defects, load: r.load}
		if slices.Contains(p.kills, report.name) {
			r.outages.killSoon(ctx, s, i%replicas, p.duration/time.Duration(3*len(reports)))
		}
		l.back = r.outages.back
		err := replay(ctx, l, report.replay, r.outages)
		cancel()
		if err != nil {
			return r, fmt.Errorf("%s: %w", report.name, err)
		}
	}
	if err := r.outages.end(); err != nil {
		return r, err
	}
	r.took = time.Since(began)
	t, err := readTrails(ctx, s)
	if err != nil {
		return r, err
	}
	compareTrails(t, told, r.defects)
	if p.store != "clustered" {
		return r, nil
	}
	if err := errors.Join(compareReplicas(ctx, s), applyAgain(ctx, s, told)); err != nil {
		return r, err
	}
	stopped = true
	if err := s.stop(); err != nil {
		return r, err
	}
	return r, compareDatabase(ctx, filepath.Join(data, "plans.db"), t, told, r.defects)
}

// prepare creates what the reports need, and waits until all replicas have it.
func prepare(ctx context.Context, s *service) error {
	if _, err := s.CreateAction(ctx, api.Action{Name: "count"}); err != nil {
		return err
	}
	if _, err := s.CreatePlan(ctx, api.Plan{Name: "storm", Actions: []string{"count"}, Strategies: []string{api.Direct}}); err != nil {
		return err
	}
	for _, replica := range s.replicas {
		if err := shown(func() error { _, err := replica.StartChangeset(ctx, "storm"); return err }); err != nil {
			return err
		}
	}
	return nil
}

// replay replays one report. In a cluster it probes each replica meanwhile.
func replay(ctx context.Context, l *storming, report func(context.Context, *storming) error, o *outages) error {
	if !l.clustered() {
		return report(ctx, l)
	}
	return together(1+len(l.replicas), func(i int) error {
		if i == 0 {
			return report(ctx, l)
		}
		return o.probe(ctx, l, i-1)
	})
}

// report is what is replayed.
type report struct {
	name   string
	replay func(ctx context.Context, l *storming) error
}

// reports are the defect reports, in the order in which they are replayed.
var reports = []report{
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
	"changes misplaced", "changes lost", "changes doubled", "changes lost at apply", "changes refused", "changesets applied twice",
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
		row(q.name, func(r result) string { return quantile(r.load.took, q.part).Round(10 * time.Microsecond).String() })
	}
	if slices.ContainsFunc(results, func(r result) bool { return len(r.load.others) > 0 }) {
		for _, q := range []struct {
			name string
			part float64
		}{{"p50", 0.5}, {"p99", 0.99}, {"p99.9", 0.999}, {"longest wait", 1}} {
			row(q.name+" beside stalls", func(r result) string { return quantile(r.load.others, q.part).Round(10 * time.Microsecond).String() })
		}
		row("longest wait of a timer alone", func(r result) string { return r.load.late.Round(10 * time.Microsecond).String() })
	}
	if !slices.ContainsFunc(results, func(r result) bool { return r.store == "clustered" }) {
		return
	}
	cluster := func(name string, cell func(r result) string) {
		row(name, func(r result) string {
			if r.store != "clustered" {
				return ""
			}
			return cell(r)
		})
	}
	cluster("operations without an answer", func(r result) string { return fmt.Sprint(r.load.lost) })
	cluster("replicas killed", func(r result) string { return fmt.Sprint(r.outages.kills) })
	cluster("kill to answer again", func(r result) string { return r.outages.longest.Round(10 * time.Millisecond).String() })
	cluster("survivor without write of an action", func(r result) string { return r.outages.gaps["bucket"].Round(10 * time.Millisecond).String() })
	cluster("survivor without write of a change", func(r result) string { return r.outages.gaps["trail"].Round(10 * time.Millisecond).String() })
	cluster("trips heard of elsewhere", func(r result) string {
		return fmt.Sprintf("%.1f %%", 100*float64(r.load.heard)/float64(max(1, r.load.trips)))
	})
}
