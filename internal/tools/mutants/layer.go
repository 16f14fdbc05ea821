package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"go/ast"
	gobuild "go/build"
	"go/parser"
	"go/token"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// A layer is a kind of tests. A mutant goes through them in order until one
// kills it.
type layer struct {
	name  string
	build build
	dir   string // of the tests; "": the target's
	args  []string
	env   []string
	wants func(test testFunction, target string) bool

	short  bool // whether only the short ones of the tests are run, by how long those of protocol take
	varies bool // whether the tests do something else each time
	slow   bool // whether -quick leaves it out
}

// A testFunction is a Test, Example or Fuzz function of a package.
type testFunction struct {
	name    string
	modeled bool   // its file exists under the tag modelcheck only
	plain   bool   // its file exists without it
	file    string // a hash of that
}

var (
	modelcheck = build{"modelcheck", []string{"-tags", "modelcheck"}}
	plain      = build{"plain", nil}
	racy       = build{"race", []string{"-race"}}

	racyModelcheck = build{"modelcheck-race", []string{"-race", "-tags", "modelcheck"}}
)

// Those that need the least time come first.
var layers = []layer{
	{
		name: "unit", build: plain,
		wants: func(f testFunction, _ string) bool { return f.plain && !concurrent.MatchString(f.name) },
	},
	{
		name: "model", build: plain, dir: "fuzz/sequences",
		wants: func(f testFunction, target string) bool { return f.plain && f.about("Fuzz", target, "Ops") },
	},
	{
		name: "history", build: plain, dir: "fuzz/histories", varies: true,
		wants: func(f testFunction, target string) bool { return f.plain && f.about("Test", target, "Histories") },
	},
	{
		name: "cost", build: modelcheck,
		wants: func(f testFunction, _ string) bool { return f.modeled && strings.Contains(f.name, "Cost") },
	},
	{
		name: "protocol", build: modelcheck,
		wants: func(f testFunction, _ string) bool { return f.modeled && !strings.Contains(f.name, "Cost") },
	},
	{
		name: "program", build: modelcheck, dir: "fuzz/interleavings", slow: true,
		wants: func(f testFunction, target string) bool {
			return f.modeled && f.about("(Test|Fuzz)", target, "Interleavings")
		},
	},
	{
		name: "publication", build: racyModelcheck, short: true, slow: true,
		wants: func(f testFunction, _ string) bool { return f.modeled && !strings.Contains(f.name, "Cost") },
	},
	{
		name: "stress", build: racy, varies: true, slow: true, args: []string{"-test.cpu=1,4"}, env: []string{"GORACE=halt_on_error=1"},
		wants: func(f testFunction, _ string) bool { return f.plain && concurrent.MatchString(f.name) },
	},
}

func layerNames() (names []string) {
	for _, l := range layers {
		names = append(names, l.name)
	}
	return names
}

var concurrent = regexp.MustCompile(`Stress|Report|Concurrent|Race`)

// subjects names what tests in folders of fuzz are about that use a package.
var subjects = map[string]string{
	"atomicbreaker":   "Breaker|Group|ResetAll",
	"cowchangeset":    "Changeset|Slice|Tracker",
	"oncecache":       "Cache|Lease",
	"shardedregistry": "Registry",
	"internal/table":  "Table|Lines|Breaker|Cache|Registry",

	"atomicbreaker/internal/ring": "Breaker|Group|Throttle",
	"atomicbreaker/retrybudget":   "RetryBudget",
	"atomicbreaker/throttle":      "Throttle",
}

// about reports whether a function in a folder of fuzz is of a kind and uses the target.
func (f *testFunction) about(prefix, target, kind string) bool {
	subject, ok := subjects[target]
	return ok && regexp.MustCompile("^"+prefix+"("+subject+")"+kind).MatchString(f.name)
}

// in returns the folder of the layer's tests of a target.
func (l *layer) in(target string) string {
	if l.dir != "" {
		return l.dir
	}
	return target
}

// testFunctions lists those of the package in a folder.
func testFunctions(dir string) ([]testFunction, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		return nil, err
	}
	with, without := gobuild.Default, gobuild.Default
	with.BuildTags = []string{"modelcheck"}
	var functions []testFunction
	for _, path := range paths {
		yes, err := with.MatchFile(dir, filepath.Base(path))
		if err != nil {
			return nil, err
		}
		no, err := without.MatchFile(dir, filepath.Base(path))
		if err != nil {
			return nil, err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		id := sha256.Sum256(text)
		file, err := parser.ParseFile(token.NewFileSet(), path, text, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, d := range file.Decls {
			d, ok := d.(*ast.FuncDecl)
			if ok && d.Recv == nil && runnable.MatchString(d.Name.Name) && d.Name.Name != "TestMain" {
				functions = append(functions, testFunction{d.Name.Name, yes && !no, no, hex.EncodeToString(id[:16])})
			}
		}
	}
	return functions, nil
}

var runnable = regexp.MustCompile(`^(Test|Example|Fuzz)`)

// endless is how long tests may take without a mutant: whoever starts a campaign sees
// that they hang, and on a busy machine they take ten times as long as on an idle one.
const endless = time.Hour

// A baseline is what a layer's tests do without a mutant.
type baseline struct {
	*layer
	dir     string
	code    uint64
	peak    int64             // of memory
	program []byte            // to look functions up in
	inputs  string            // a hash of what it is made of
	files   map[string]string // and of the files of the tests, by function

	joined string   // the program with all mutants together, or ""
	apart  []string // functions that cannot be run with it
	reach  reach    // of the others

	tests string                   // a pattern that selects them
	took  map[string]time.Duration // by those of them that have no subtests, and by subtest
	whole time.Duration
	quick []string // the shortest
}

// measure builds and runs the layer's tests of a target, after the layers
// before it. It returns nil if there are none.
func (l *layer) measure(g *toolchain, target string, before []*baseline) (*baseline, error) {
	b := &baseline{layer: l, dir: l.in(target), took: map[string]time.Duration{}, files: map[string]string{}}
	functions, err := testFunctions(filepath.Join(g.root, b.dir))
	if err != nil {
		return nil, err
	}
	var names []string
	for _, f := range functions {
		if l.wants(f, target) {
			names = append(names, f.name)
			b.files[f.name] = f.file
		}
	}
	if len(names) == 0 {
		return nil, nil
	}
	b.tests = pattern(names)
	if l.short {
		i := slices.IndexFunc(before, func(b *baseline) bool { return b.name == "protocol" })
		if i < 0 || len(before[i].quick) == 0 {
			return nil, nil
		}
		b.tests = pattern(before[i].quick)
	}
	binary, err := g.test(l.build, b.dir, "baseline", "")
	if err != nil {
		return nil, err
	}
	b.code = code(binary)
	if b.inputs, err = g.inputs(l.build, b.dir); err != nil {
		return nil, err
	}
	start := time.Now()
	r := b.run(g, program{binary: binary}, b.tests, endless, math.MaxInt64)
	b.whole = time.Since(start)
	if r.how != passed {
		return nil, fmt.Errorf("the %s tests of %s fail without any mutant:\n%s", l.name, target, r.output)
	}
	b.peak = r.peak
	b.read(r.output)
	b.program, err = os.ReadFile(binary)
	return b, errors.Join(err, os.Remove(binary))
}

var passLine = regexp.MustCompile(`(?m)^ *--- PASS: (\S+) \((\d+\.\d+)s\)$`)

// quickTest is how long a test may take to be among those tried first.
const quickTest = 30 * time.Millisecond

// read fills in what the output of a run says.
func (b *baseline) read(output string) {
	parents := map[string]bool{}
	for _, line := range passLine.FindAllStringSubmatch(output, -1) {
		test := line[1]
		if parent, sub, ok := strings.Cut(test, "/"); ok {
			parents[parent] = true
			sub, _, _ = strings.Cut(sub, "/")
			test = parent + "/" + sub
		}
		d, _ := time.ParseDuration(line[2] + "s") // the pattern is right
		b.took[test] = max(b.took[test], d)
	}
	for test, d := range b.took {
		if parents[test] {
			delete(b.took, test)
		} else if d <= quickTest {
			b.quick = append(b.quick, test)
		}
	}
}

// tooSlow is how long a test takes at least that -quick leaves out.
const tooSlow = 2 * time.Second

// spare leaves out the tests that take long.
func (b *baseline) spare() {
	maps.DeleteFunc(b.took, func(_ string, d time.Duration) bool { return d >= tooSlow })
}

// reaches reports whether the tests' program contains the function of m: the
// linker leaves out what is never called.
func (b *baseline) reaches(m *mutant) bool {
	owner, method, ok := strings.Cut(m.function, ".")
	if !ok {
		owner, method = "", m.function
	} else {
		owner = `\(?\*?` + owner + `(\[\.\.\.\])?\)?\.`
	}
	f := regexp.MustCompile(regexp.QuoteMeta(module+"/"+m.target.dir+".") + owner + method + `[^\w]`)
	return m.function == "const" || f.Match(b.program)
}

// pattern returns a pattern for -test.run that selects tests and subtests, and no
// others: subtests of two tests may have the same name, and take long in one.
func pattern(tests []string) string {
	exactly := func(name string) string { return "^" + regexp.QuoteMeta(name) + "$" }
	var each []string
	for _, test := range tests {
		top, sub, ok := strings.Cut(test, "/")
		if one := exactly(top); ok {
			each = append(each, one+"/"+exactly(sub))
		} else {
			each = append(each, one)
		}
	}
	slices.Sort(each)
	if len(each) == 0 {
		return exactly("")
	}
	return strings.Join(slices.Compact(each), "|")
}
