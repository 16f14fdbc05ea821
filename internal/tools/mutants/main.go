package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

// config is what the command line says.
type config struct {
	targets    []string
	sequential bool
	run        *regexp.Regexp
	list       bool
	verbose    bool
	workers    int
	sample     int
	memory     int64
	patience   time.Duration
	layers     map[string]bool
	again      bool
	trust      bool
	quick      bool
	record     bool
	tidy       bool
}

// everything lists the packages that are mutated unless others are named.
var everything = []string{"internal/table", "atomicbreaker/internal/ring", "atomicbreaker/retrybudget", "atomicbreaker/throttle", "cowchangeset", "oncecache", "shardedregistry", "atomicbreaker"}

// reviews is where the lists of reviewed mutants are, from the module's root.
const reviews = "internal/tools/mutants/reviewed"

// records is where what became of mutants is written down.
const records = "internal/tools/mutants/record"

func main() {
	c, err := parse(os.Args[1:], os.Stderr)
	if err == nil {
		err = c.execute(os.Stdout)
	}
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

const usage = `usage: go run ./internal/tools/mutants [flags] [packages]

Breaks the concurrency of packages (all: ` + "%s" + `)
one line at a time, and reports which breaks their tests do not notice. Fails
if one is not in ` + reviews + `.

  go run ./internal/tools/mutants ./oncecache
  go run ./internal/tools/mutants -run entry.go ./oncecache        only that file
  go run ./internal/tools/mutants -run entry.settle ./oncecache    only that function
  go run ./internal/tools/mutants -run ': torn' ./oncecache        only that operator
  go run ./internal/tools/mutants -list ./oncecache                only print them
  go run ./internal/tools/mutants -run … -v ./oncecache            with diffs and failures

`

func parse(args []string, errs io.Writer) (*config, error) {
	c := &config{layers: map[string]bool{}}
	names := layerNames()
	f := flag.NewFlagSet("mutants", flag.ContinueOnError)
	f.SetOutput(errs)
	f.Usage = func() {
		fmt.Fprintf(errs, usage, strings.Join(everything, ", "))
		f.PrintDefaults()
	}
	run := f.String("run", "", "only mutants whose `regexp` matches \"file.go:line function: operator: source\"")
	f.IntVar(&c.sample, "sample", 0, "only so `many` mutants of all packages together, always the same")
	f.BoolVar(&c.list, "list", false, "print the mutants and do not run them")
	f.BoolVar(&c.sequential, "sequential", false, "break conditions, arithmetic and results in place of concurrency")
	f.BoolVar(&c.verbose, "v", false, "print each mutant's diff and what killed it")
	f.IntVar(&c.workers, "j", 2, "mutants at a time")
	f.BoolVar(&c.trust, "trust", false, "do not run the tests on mutants that have been reviewed")
	f.BoolVar(&c.quick, "quick", false, "run only what takes little, and judge only mutants that it kills: review the others, then run the rest without this")
	f.BoolVar(&c.again, "again", false, "run the tests also on mutants whose fate is known from an earlier campaign")
	f.BoolVar(&c.record, "record", false, "write what is known of all mutants into "+records+", and run no tests")
	f.BoolVar(&c.tidy, "tidy", false, "take out of "+reviews+" and "+records+" what names no mutant, and run no tests")
	megabytes := f.Int64("memory", 1024, "end tests that use these `MiB` and three times as much as without a mutant")
	f.DurationVar(&c.patience, "patience", 10*time.Second, "end tests after this and five times as long as without a mutant")
	only := f.String("layers", strings.Join(names, ","), "the tests to run")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	var err error
	if c.run, err = regexp.Compile(*run); err != nil {
		return nil, err
	}
	if c.workers < 1 {
		return nil, fmt.Errorf("-j %d: must be at least 1", c.workers)
	}
	if c.sample < 0 {
		return nil, fmt.Errorf("-sample %d: must not be negative", c.sample)
	}
	if (c.record || c.tidy) && (*run != "" || c.sample > 0) {
		return nil, errors.New("-record or -tidy with -run or -sample: a record is of all mutants")
	}
	c.memory = *megabytes << 20
	for _, l := range strings.Split(*only, ",") {
		if !slices.Contains(names, l) {
			return nil, fmt.Errorf("-layers %s: want some of %s", l, strings.Join(names, ","))
		}
		c.layers[l] = true
	}
	for _, arg := range f.Args() {
		c.targets = append(c.targets, path.Clean(filepath.ToSlash(arg)))
	}
	if len(c.targets) == 0 {
		c.targets = everything
	}
	return c, nil
}

// operators returns the operators to use, and the names they give.
func (c *config) operators() (operators, []string) {
	if c.sequential {
		return sequential, sequentialNames
	}
	return concurrency, concurrencyNames
}

// quickly is how many interleavings of a protocol are enough with -quick.
const quickly = "500"

// order returns the layers to run, those first that kill most for least.
func (c *config) order() (order []*layer) {
	for i := range layers {
		if c.layers[layers[i].name] && !(c.quick && layers[i].slow) {
			order = append(order, &layers[i])
		}
	}
	return order
}

// execute runs what the command line asks for.
func (c *config) execute(out io.Writer) error {
	if c.quick {
		if err := os.Setenv("MC_MOST", quickly); err != nil {
			return err
		}
	}
	caches, err := os.UserCacheDir()
	if err != nil {
		return err
	}
	cache := filepath.Join(caches, "latchfree-mutants")
	if err := os.MkdirAll(cache, 0o777); err != nil {
		return err
	}
	g, err := newToolchain(filepath.Join(cache, "go-build"))
	if err != nil {
		return err
	}
	defer g.close()
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-interrupted
		g.close()
		os.Exit(1)
	}()
	v, err := openMemory(filepath.Join(cache, "verdicts"))
	if err != nil {
		return err
	}
	return c.campaigns(g, newKillers(filepath.Join(cache, "killers.json")), v, out)
}

// campaigns runs one for each target.
func (c *config) campaigns(g *toolchain, k *killers, v *memory, out io.Writer) error {
	ops, names := c.operators()
	var chosen []selection
	for _, dir := range c.targets {
		t, err := g.load(dir)
		if err != nil {
			return err
		}
		mutants := t.mutants(ops)
		all := len(mutants)
		mutants = slices.DeleteFunc(mutants, func(m *mutant) bool { return !c.run.MatchString(m.place() + " " + m.key()) })
		chosen = append(chosen, selection{t, mutants, all == len(mutants)})
	}
	if c.sample > 0 {
		sample(chosen, c.sample)
	}
	var scores []*score
	for _, s := range chosen {
		dir, mutants := s.target.dir, s.mutants
		if c.list {
			for _, m := range mutants {
				fmt.Fprintf(out, "%s/%s %s\n", dir, m.place(), m.key())
				if c.verbose {
					fmt.Fprint(out, m.diff())
				}
			}
			continue
		}
		if c.tidy {
			code, err := g.code(dir)
			if err != nil {
				return err
			}
			found, err := tidy(g.home, s.target, mutants, names, code, true)
			if err != nil {
				return err
			}
			fmt.Fprint(out, strings.Join(append(found, ""), "\n"))
			continue
		}
		r, err := readReview(filepath.Join(g.root, reviews), dir)
		if err != nil {
			return err
		}
		known, err := readRecord(filepath.Join(g.root, records), dir)
		if err != nil {
			return err
		}
		x := &campaign{toolchain: g, killers: k, memory: v, record: known, review: r, config: c, out: out, target: s.target, mutants: mutants}
		if c.record {
			if err := x.put(names); err != nil {
				return err
			}
			continue
		}
		if err := x.run(); err != nil {
			return err
		}
		scores = append(scores, x.score(s.whole && len(c.layers) == len(layers), names))
	}
	if c.sample > 0 && !c.list {
		defer func() { fmt.Fprint(out, "\n", summary(scores, g.commit(), time.Now())) }()
	}
	if !c.list && !c.record && !c.tidy && !print(out, scores) {
		return errors.New("not every mutant that lives is known")
	}
	return nil
}
