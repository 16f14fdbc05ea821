//go:build modelcheck

package mc

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// A Promise is a word of the sentence that says how an operation progresses.
type Promise string

// The promises.
const (
	WaitFree        Promise = "wait-free"
	LockFree        Promise = "lock-free"
	ObstructionFree Promise = "obstruction-free"
	Blocks          Promise = "blocking"
	none            Promise = ""

	elsewhere Promise = "see" // that which more is said, and said by none of these words here
)

// Operation is what a thread does in a World, once.
type Operation[T any] struct {
	// Name begins with the method, as in "Registry.Get", or is that of a function; what comes
	// after a space says which of its cases this is.
	Name string
	Do   func(T)

	promise Promise
	steps   int     // of a wait-free one
	waits   Waiting // what it may wait for, and what some other must make it wait for
}

// Bounded returns o as wait-free: it takes so many steps at most, and in some execution as many.
func (o Operation[T]) Bounded(steps int) Operation[T] {
	o.promise, o.steps = WaitFree, steps
	return o
}

// Free returns o as lock-free.
func (o Operation[T]) Free() Operation[T] { o.promise = LockFree; return o }

// Alone returns o as obstruction-free: it returns if all others stand still, but beside another
// that does not, nothing is said.
func (o Operation[T]) Alone() Operation[T] { o.promise = ObstructionFree; return o }

// Waits returns o as blocking on w and nothing else.
func (o Operation[T]) Waits(w Waiting) Operation[T] {
	o.promise, o.waits = Blocks, w
	return o
}

// World is a shared value and operations on it. Check stops each of them, at each of its steps,
// beside each other one. An operation without a promise is stopped and beats others, but nothing is
// required of it.
type World[T any] struct {
	Name       string
	New        func() T // fresh, with whatever happened before
	Operations []Operation[T]

	Pairs bool // explore no three threads: the operations are long
}

// Pass lets time pass in an operation of a World. Its timers wait for that.
func Pass(d time.Duration) { active.Advance(d) }

// Scenario is a World of any type.
type Scenario interface {
	name() string
	check(t *testing.T)
	promises() map[string][]Promise
}

func (w World[T]) name() string { return w.Name }

func (w World[T]) promises() map[string][]Promise {
	all := map[string][]Promise{}
	for _, o := range w.Operations {
		method, _, _ := strings.Cut(o.Name, " ")
		all[method] = append(all[method], o.promise)
	}
	return all
}

// CheckProgress checks that operations progress as their documentation says, whoever stops for
// ever. In each world, for each operation A that promises something and each operation B:
//
//   - B stops after each number of steps, beside one A: in every execution A returns. Beside one A
//     and another A or B: in every execution with at most one preemption, both return.
//   - If A promises to be blocking, it may be left waiting for what it names, and by some B it is.
//   - If A is wait-free, it takes no more than its number of steps in all of these, nor when one to
//     four operations, B and C in turns, run whole between its steps, for each C after B in the list, and B.
//
// Each public method of the package in the working folder whose documentation has a sentence
// about its progress must have an operation for each promise in it, or be in except, by its name or
// by its name and the promise, with a reason.
func CheckProgress(t *testing.T, except map[string]string, worlds ...Scenario) {
	t.Helper()
	covered := map[string][]Promise{}
	for _, w := range worlds {
		for method, promises := range w.promises() {
			covered[method] = append(covered[method], promises...)
		}
		t.Run(w.name(), w.check)
	}
	documented, err := documentedProgress(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range uncovered(documented, covered, except) {
		t.Error(p)
	}
}

// uncovered lists what is documented and not covered, and what is covered or excused without being
// documented.
func uncovered(documented, covered map[string][]Promise, except map[string]string) (problems []string) {
	excused := map[string]bool{}
	for _, method := range slices.Sorted(maps.Keys(documented)) {
		for _, p := range documented[method] {
			if p == elsewhere {
				continue
			}
			key := method
			if except[key] == "" {
				key += " " + string(p)
			}
			switch {
			case slices.Contains(covered[method], p):
			case except[key] != "":
				excused[key] = true
			default:
				problems = append(problems, fmt.Sprintf("%s promises to be %s, and no operation shows it", method, p))
			}
		}
	}
	for _, method := range slices.Sorted(maps.Keys(covered)) {
		for _, p := range covered[method] {
			if p != none && !slices.Contains(documented[method], p) && !slices.Contains(documented[method], elsewhere) {
				problems = append(problems, fmt.Sprintf("an operation shows that %s is %s, which its documentation does not say", method, p))
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(except)) {
		if !excused[key] {
			problems = append(problems, fmt.Sprintf("%s needs no exception", key))
		}
	}
	return problems
}

var (
	progressSentence = regexp.MustCompile(`(?s)\bis (wait-free|lock-free|obstruction-free|blocking)\b.*?(\.\s|\.$|$)`)
	progressWord     = regexp.MustCompile(`\b(wait-free|lock-free|obstruction-free|blocking|blocks)\b`)
)

// documentedProgress returns what the exported functions and methods of a package promise.
func documentedProgress(dir string) (map[string][]Promise, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	found := map[string][]Promise{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || !fn.Name.IsExported() {
				continue
			}
			name := fn.Name.Name
			if fn.Recv != nil {
				of := receiverName(fn.Recv.List[0].Type)
				if !ast.IsExported(of) {
					continue
				}
				name = of + "." + name
			}
			sentence := progressSentence.FindString(fn.Doc.Text())
			if strings.Contains(sentence, "see [") {
				found[name] = append(found[name], elsewhere)
			}
			for _, p := range progressWord.FindAllString(sentence, -1) {
				if p == "blocks" {
					p = string(Blocks)
				}
				if !slices.Contains(found[name], Promise(p)) {
					found[name] = append(found[name], Promise(p))
				}
			}
		}
	}
	return found, nil
}

func receiverName(t ast.Expr) string {
	switch t := t.(type) {
	case *ast.StarExpr:
		return receiverName(t.X)
	case *ast.IndexExpr:
		return receiverName(t.X)
	case *ast.IndexListExpr:
		return receiverName(t.X)
	case *ast.Ident:
		return t.Name
	}
	return ""
}

// What is explored of two threads at one stall: all orders, or, if there are more than
// pairSchedules, those with at most one preemption, and of these no more than mostSchedules. Where a
// part is enough, the first fewSchedules orders, which begin with that in which nobody is preempted
// before the stall. Of operations that run whole between the steps of another, beatSchedules orders.
const (
	pairSchedules = 200
	mostSchedules = 400
	beatSchedules = 5000
	fewSchedules  = 25
)

// stalls is a World while it is checked.
type stalls[T any] struct {
	World[T]
	problems  []string
	schedules int
	waited    []Waiting // by operation
	most      []int     // steps, by operation
	few, many []int     // likewise, of one that lets up to 3 others pass, and 4
	bounded   bool      // some pair was too large
	cut       bool      // some exploration had more than mostSchedules
	failed    bool
	part      bool // not everything is asked for
}

// stallsVariable names the environment variable that, as "all", makes CheckProgress explore
// everything. Otherwise it explores the first orders of pairs, and with -short of some pairs.
const stallsVariable = "MC_STALLS"

func (w World[T]) check(t *testing.T) {
	s := w.explore(os.Getenv(stallsVariable) != "all", testing.Short())
	for _, p := range s.problems {
		t.Error(p)
	}
	t.Logf("%d operations, %d executions: %s", len(w.Operations), s.schedules, s.extent())
}

// explore explores a world, or pairs only, or some of these.
func (w World[T]) explore(pairsOnly, sample bool) *stalls[T] {
	n := len(w.Operations)
	s := &stalls[T]{
		World: w, part: pairsOnly,
		waited: make([]Waiting, n), most: make([]int, n), few: make([]int, n), many: make([]int, n),
	}
	failed := make([]bool, n)
	for a, o := range w.Operations {
		if o.promise == none {
			continue
		}
		s.failed = false // one failure of each operation is enough
		for b := range w.Operations {
			if sample && (a+b)%4 != 0 {
				continue
			}
			s.pair(a, b)
			if !pairsOnly && !w.Pairs {
				s.three(a, b)
			}
			if o.promise == WaitFree {
				s.beaten(a, b)
			}
		}
		failed[a] = s.failed
	}
	for a, o := range w.Operations {
		if pairsOnly || failed[a] || o.promise == none {
			continue
		}
		if missing := o.waits &^ s.waited[a]; missing != 0 {
			s.problem("%s never waits for %v", o.Name, missing)
		}
		if s.many[a] > s.few[a] {
			s.problem("%s takes %d steps, and %d if one more passes it", o.Name, s.few[a], s.many[a])
		}
		if o.promise == WaitFree && s.most[a] != o.steps {
			s.problem("%s takes %d steps at most, not %d", o.Name, s.most[a], o.steps)
		}
	}
	return s
}

func (s *stalls[T]) problem(format string, args ...any) {
	s.problems = append(s.problems, fmt.Sprintf(format, args...))
}

func (s *stalls[T]) extent() string {
	if s.part {
		return fmt.Sprintf("two threads, the first %d orders", fewSchedules)
	}
	text := "two threads"
	if s.bounded {
		text += ", or ≤ 1 preemption"
	}
	if !s.Pairs {
		text += "; three, ≤ 1 preemption"
	}
	if s.cut {
		text += "; not all of the longest"
	}
	return text
}

// pair explores a beside b, which stops.
func (s *stalls[T]) pair(a, b int) {
	cfg := Config{MaxSchedules: pairSchedules}
	if s.part {
		cfg.MaxSchedules = fewSchedules
	}
	s.stopped(cfg, b, a)
}

// three explores a beside b, which stops, and another a, or another b.
func (s *stalls[T]) three(a, b int) {
	others := []int{a, b}
	if os.Getenv(longVariable) != "" {
		others = others[:0]
		for c := range s.Operations {
			others = append(others, c)
		}
	}
	for _, c := range slices.Compact(others) {
		if s.Operations[a].promise == ObstructionFree || s.Operations[c].promise == ObstructionFree {
			continue
		}
		s.stopped(Config{Mode: Bounded, Preemptions: 1, MaxSchedules: mostSchedules}, b, a, c)
	}
}

// stopped explores the operations, the first of which stops after each number of steps.
func (s *stalls[T]) stopped(cfg Config, operations ...int) {
	for after := 0; !s.failed; after++ {
		x := &stall{after: after}
		r := s.run(cfg, x, operations)
		if r.Failure == "" && !r.Complete && !s.part {
			s.bounded = true
			r = s.run(Config{Mode: Bounded, Preemptions: 1, MaxSchedules: mostSchedules}, x, operations)
		}
		s.cut = s.cut || !r.Complete
		s.result(r, x, operations, fmt.Sprintf("the first of which stopped after %d steps", after))
		if !x.reached {
			return
		}
	}
}

// beaters is how many operations run at most between the steps of one that is wait-free. All
// of them must not take it to more steps than all but one.
const beaters = 4

// beaten explores a while more and more others run whole between its steps.
func (s *stalls[T]) beaten(a, b int) {
	for c := b; c < len(s.Operations); c++ {
		if s.part && c != b {
			continue
		}
		operations := []int{a}
		for k := range beaters {
			if k%2 == 0 {
				operations = append(operations, b)
			} else {
				operations = append(operations, c)
			}
			if s.part && k != 1 || s.failed {
				continue
			}
			x := &stall{beats: true}
			r := s.run(Config{Mode: Bounded, Preemptions: Unbounded, MaxSchedules: beatSchedules}, x, operations)
			s.cut = s.cut || !r.Complete
			s.result(r, x, operations, "the first of which lets others pass")
			if k == beaters-1 {
				s.many[a] = max(s.many[a], x.most[0])
			} else {
				s.few[a] = max(s.few[a], x.most[0])
			}
		}
	}
}

func (s *stalls[T]) run(cfg Config, x *stall, operations []int) Result {
	x.may, x.limit, x.waited, x.most = nil, nil, make([]Waiting, len(operations)), make([]int, len(operations))
	for i, n := range operations {
		o := s.Operations[n]
		may, limit := o.waits, -1
		if o.promise == none || i == 0 && !x.beats {
			may = Bucket | Mutex | Event
		}
		if o.promise == WaitFree && (i == 0) == x.beats {
			limit = o.steps
		}
		x.may, x.limit = append(x.may, may), append(x.limit, limit)
	}
	cfg.stall, cfg.booked, cfg.Timed = x, true, true
	r := Explore(cfg, func(m *M) {
		shared := s.New()
		x.first = len(m.threads)
		for _, n := range operations {
			m.Go(func() { s.Operations[n].Do(shared) })
		}
	})
	s.schedules += r.Schedules
	for i, n := range operations {
		if i > 0 || x.beats {
			s.waited[n] |= x.waited[i]
		}
		if (i == 0) == x.beats {
			s.most[n] = max(s.most[n], x.most[i])
		}
	}
	return r
}

func (s *stalls[T]) result(r Result, x *stall, operations []int, how string) {
	s.failed = s.failed || r.Failure != ""
	var names []string
	for _, n := range operations {
		names = append(names, s.Operations[n].Name)
	}
	if r.Failure != "" {
		s.problem("%s\nin %s, %s, after %v\n\n%s", r.Failure, strings.Join(names, " ∥ "), how, r, r.Trace)
	}
}
