package repotest

import (
	"go/ast"
	"go/token"
	"go/types"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/latchfree/latchfree/internal/tools/typed"
)

// The classes of progress, the strongest first.
var classes = []string{"wait-free", "lock-free", "blocking"}

const (
	waitFree = iota
	lockFree
	blocking
)

// No operation says that it progresses better than its code does, with all that it calls
// but functions of the user's and methods of exported interfaces: it is blocking if it may lock a
// mutex, receive or wait, and lock-free if it may swap in a loop until that succeeds. Where it
// says that it blocks in some case, only the calls that are made in that case are excused.
func TestProgressIsNoBetterThanTheCode(t *testing.T) {
	g := newCallGraph(loadTyped(t, patterns(library(t))...))
	checked := 0
	for f, d := range g.bodies {
		pkg := strings.TrimPrefix(f.Pkg().Path(), modulePath+"/")
		if !slices.Contains(public, pkg) && !slices.Contains(parts, pkg) || !d.decl.Name.IsExported() {
			continue
		}
		says, cases, ok := says(d.decl.Doc.Text())
		if !ok {
			continue // see TestOperationsAreDocumented
		}
		checked++
		if does, why := g.class(f, cases); does > says {
			t.Errorf("%s: %s says %s and is %s: %s", d.in.Fset.Position(d.decl.Pos()), nameOf(f), classes[says], classes[does], strings.Join(why, " > "))
		}
	}
	if checked < 150 {
		t.Errorf("the test sees %d operations", checked)
	}
	for _, e := range excused {
		if !g.excusing[e] {
			t.Errorf("no operation of %s* that says %q calls %s*", e.of, e.says, e.callee)
		}
	}
}

// excuse lets what begins with of call what begins with callee if the sentence about its
// progress says so: it names the only case in which it is called. It may also be called where
// the sentence need not say so: says is empty then, and the reason is one that the analysis
// does not see.
type excuse struct{ of, callee, says string }

var excused = []excuse{
	{"atomicbreaker.Breaker.", "atomicbreaker.cell.", ""}, // a Breaker's core has no owner
	{"atomicbreaker.Permit.", "atomicbreaker.cell.", ""},  // it is of a Breaker
	{"atomicbreaker.Execute", "atomicbreaker.cell.", ""},  // it takes a Breaker

	{"atomicbreaker.", "table.Table.", "as Group says"},
	{"atomicbreaker.", "atomicbreaker.cell.retire", "as Group says"},
	{"cowchangeset.", "cowchangeset.flusher.await", "with a Store"},
	{"cowchangeset.", "cowchangeset.Tracker.startStored", "with a Store"},
	{"oncecache.", "", "and otherwise blocking"}, // than if there is a value, or none: which calls are made then, a reader has to see
	{"oncecache.Lease.", "oncecache.root.dispose", "calls Config.Close"},
	{"shardedregistry.", "shardedregistry.constraints.", "indexes"},
	{"shardedregistry.", "shardedregistry.expiry.oversee", "TTL"},
	{"shardedregistry.", "shardedregistry.expiry.watch", "the timer looks"},
	{"shardedregistry.", "shardedregistry.killExpired", "expires meanwhile"},
	{"shardedregistry.", "shardedregistry.use.finish", "helps a transaction"},
	{"shardedregistry.", "shardedregistry.root.begin", "otherwise blocking"},
	{"shardedregistry.", "shardedregistry.target.create", "otherwise blocking"},
	{"shardedregistry.Registry.Update", "shardedregistry.target.create", ""}, // it creates nothing: change.create is false
	{"shardedregistry.", "shardedregistry.transaction.insert", "if a key is absent or deleted"},
	{"shardedregistry.", "shardedregistry.transaction.withdraw", "if a key is absent or deleted"},
	{"shardedregistry.", "shardedregistry.root.unlink", "hash bucket"},
}

// excuse reports whether f, which says cases, may call what it seems to call.
func (g *callGraph) excuse(f, callee *types.Func, cases string) bool {
	for _, e := range g.excused {
		if strings.HasPrefix(nameOf(f), e.of) && strings.HasPrefix(nameOf(callee), e.callee) && strings.Contains(cases, e.says) {
			g.excusing[e] = true
			return true
		}
	}
	return false
}

// nameOf returns how a function or method is called, without its package's path.
func nameOf(f *types.Func) string {
	if n, ok := receiver(f).(*types.Named); ok {
		return f.Pkg().Name() + "." + n.Obj().Name() + "." + f.Name()
	}
	return f.Pkg().Name() + "." + f.Name()
}

var sentence = regexp.MustCompile(`(?s)\bis (wait-free|lock-free|blocking)\b.*?(\.\s|\.$|$)`)

// says returns the class that the sentence of a doc names first, or the weaker one of wait-free
// and lock-free if it names both, and the sentence, which names the cases in which it is
// another. A loop is a part of the method that returns its function.
func says(doc string) (class int, cases string, ok bool) {
	m := sentence.FindStringSubmatch(doc)
	if m == nil {
		return 0, "", false
	}
	cases = strings.Join(strings.Fields(m[0]), " ")
	switch class = slices.Index(classes, m[1]); {
	case strings.Contains(cases, "the loop is blocking"):
		class = blocking
	case class == waitFree && strings.Contains(cases, classes[lockFree]):
		class = lockFree
	}
	return class, cases, true
}

// callGraph has what the functions of some packages do.
type callGraph struct {
	bodies map[*types.Func]body
	does   map[*types.Func]*effects
	again  map[*types.Func]bool // what recursive has found

	excused  []excuse
	excusing map[excuse]bool // those that were needed
}

type body struct {
	in   *typed.Package
	decl *ast.FuncDecl
}

// effects is what a function does itself.
type effects struct {
	waits string // a mutex, a receive, or a call outside of the module that waits
	swaps bool   // compares and swaps
	calls []call
	loops bool // compares and swaps in a loop that ends when that succeeds
}

type call struct {
	f    *types.Func
	loop bool // in such a loop, if f swaps
}

func newCallGraph(packages []*typed.Package) *callGraph {
	g := &callGraph{map[*types.Func]body{}, map[*types.Func]*effects{}, map[*types.Func]bool{}, excused, map[excuse]bool{}}
	for _, p := range packages {
		for _, f := range p.Files {
			for _, d := range f.Decls {
				if d, ok := d.(*ast.FuncDecl); ok && d.Body != nil {
					g.bodies[p.Info.Defs[d.Name].(*types.Func)] = body{p, d}
				}
			}
		}
	}
	methods := map[types.Type]map[string]*types.Func{} // by the types that have them
	for f := range g.bodies {
		if t := receiver(f); t != nil {
			if methods[t] == nil {
				methods[t] = map[string]*types.Func{}
			}
			methods[t][f.Name()] = f
		}
	}
	for f, b := range g.bodies {
		e := new(effects)
		e.look(b.in, b.decl.Body, false)
		for _, c := range e.calls { // of methods of our own interfaces: any type may be behind them
			for _, m := range behind(c.f, methods) {
				e.calls = append(e.calls, call{m, c.loop})
			}
		}
		g.does[f] = e
	}
	return g
}

// receiver returns the generic type whose method f is, or nil.
func receiver(f *types.Func) types.Type {
	r := f.Signature().Recv()
	if r == nil {
		return nil
	}
	t := r.Type()
	if p, ok := t.(*types.Pointer); ok {
		t = p.Elem()
	}
	if n, ok := t.(*types.Named); ok {
		return n.Origin()
	}
	return t
}

// behind returns the methods that a call of f may run if f is one of an interface that is
// not exported, which a user cannot implement: those of types with methods of all its names.
func behind(f *types.Func, methods map[types.Type]map[string]*types.Func) (all []*types.Func) {
	t, ok := receiver(f).(*types.Named)
	if !ok || t.Obj().Exported() || !types.IsInterface(t) {
		return nil
	}
	i := t.Underlying().(*types.Interface)
types:
	for _, has := range methods {
		for m := range i.Methods() {
			if has[m.Name()] == nil {
				continue types
			}
		}
		all = append(all, has[f.Name()])
	}
	return all
}

// waiting lists what waits outside of the module.
var waiting = regexp.MustCompile(`^\(\*sync\.(RW)?Mutex\)\.R?Lock$|^\(\*sync\.(WaitGroup|Cond)\)\.Wait$|^time\.Sleep$|^\(\*sync\.Once\)\.Do$|xsync/v3\.\w+(\[.*\])?\)\.(Compute|LoadOr\w+|LoadAnd\w+|Store|Delete|Clear|Range)$`)

// look finds what n does.
func (e *effects) look(p *typed.Package, n ast.Node, loop bool) {
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ForStmt:
			if n.Init != nil {
				e.look(p, n.Init, loop)
			}
			again := loop || n.Init == nil || n.Post == nil // others count
			for _, part := range []ast.Node{n.Cond, n.Post, n.Body} {
				if part != nil && part != ast.Expr(nil) && part != ast.Stmt(nil) {
					e.look(p, part, again)
				}
			}
			return false
		case *ast.SelectStmt:
			if !slices.ContainsFunc(n.Body.List, func(s ast.Stmt) bool { return s.(*ast.CommClause).Comm == nil }) {
				e.waits = "a select statement"
			}
			for _, s := range n.Body.List { // whose receives do not wait by themselves
				for _, s := range s.(*ast.CommClause).Body {
					e.look(p, s, loop)
				}
			}
			return false
		case *ast.SendStmt:
			e.waits = "a send"
		case *ast.UnaryExpr:
			if n.Op == token.ARROW {
				e.waits = "a receive"
			}
		case *ast.RangeStmt:
			if overChannel(p.Info.TypeOf(n.X)) {
				e.waits = "a loop over a channel"
			}
		case *ast.GoStmt:
			return false
		case *ast.CallExpr:
			for _, name := range []string{"Go", "After", "AfterFunc"} { // for other goroutines
				if s, ok := n.Fun.(*ast.SelectorExpr); ok && s.Sel.Name == name {
					if o := p.Info.Uses[s.Sel]; o != nil && o.Pkg() != nil && o.Pkg().Path() == seam {
						return false
					}
				}
			}
		case *ast.Ident:
			f, ok := p.Info.Uses[n].(*types.Func)
			if !ok {
				break
			}
			f = f.Origin()
			if waiting.MatchString(f.FullName()) {
				e.waits = f.FullName()
			}
			if strings.HasPrefix(f.Name(), "CompareAndSwap") && f.Pkg().Path() == "sync/atomic" {
				e.swaps = true
				e.loops = e.loops || loop
			}
			e.calls = append(e.calls, call{f, loop})
		}
		return true
	})
}

// recursive reports whether f may call itself.
func (g *callGraph) recursive(f *types.Func) bool {
	if _, ok := g.again[f]; !ok {
		seen := map[*types.Func]bool{}
		for queue := []*types.Func{f}; len(queue) > 0 && !seen[f]; queue = queue[1:] {
			if e := g.does[queue[0]]; e != nil {
				for _, c := range e.calls {
					if !seen[c.f] {
						seen[c.f] = true
						queue = append(queue, c.f)
					}
				}
			}
		}
		g.again[f] = seen[f]
	}
	return g.again[f]
}

// class returns how f progresses but for what is excused where it says cases, and the calls on
// the way to what says so.
func (g *callGraph) class(f *types.Func, cases string) (class int, why []string) {
	type step struct {
		f    *types.Func
		from *step
		loop bool
	}
	way := func(s *step, end string) (names []string) {
		for names = []string{end}; s != nil; s = s.from {
			names = append(names, nameOf(s.f))
		}
		slices.Reverse(names)
		return names
	}
	// Being in a loop is inherited by what is called there.
	type visit struct {
		f    *types.Func
		loop bool
	}
	seen := map[visit]bool{}
	for queue := []*step{{f: f}}; len(queue) > 0; queue = queue[1:] {
		s := queue[0]
		s.loop = s.loop || g.recursive(s.f)
		e := g.does[s.f]
		if e == nil || seen[visit{s.f, s.loop}] {
			continue
		}
		seen[visit{s.f, s.loop}] = true
		if e.waits != "" {
			return blocking, way(s, e.waits)
		}
		if class == waitFree && (e.loops || s.loop && e.swaps) {
			class, why = lockFree, way(s, "a loop that swaps")
		}
		for _, c := range e.calls {
			if g.does[c.f] != nil && !g.excuse(f, c.f, cases) {
				queue = append(queue, &step{c.f, s, s.loop || c.loop})
			}
		}
	}
	return class, why
}

// What each function says is what it does.
func TestProgressIsFound(t *testing.T) {
	p := typedSource(t, `package p
import (
	lock "sync"
	"sync/atomic"
)
type word struct { mu lock.Mutex; v atomic.Int32; f func(); c chan int; i interface{ Lock() } }
// Load is wait-free.
func (w *word) Load() int32 { w.f(); w.i.Lock(); return w.v.Load() }
// Once is wait-free.
func (w *word) Once() bool { for range 3 { w.Load() }; return w.once() }
func (w *word) once() bool { return w.v.CompareAndSwap(0, 1) }
// Retry is lock-free.
func (w *word) Retry() { for !w.v.CompareAndSwap(0, 1) {} }
// Far is lock-free.
func (w *word) Far() { for { if each[*word](w)() { return } } }
func each[T interface { once() bool }](w *word) func() bool { return func() bool { return w.once() } }
// Again is lock-free.
func (w *word) Again() { if !w.once() { w.then() } }
func (w *word) then() { w.Again() }
// Locks is wait-free; if that is not 1, it is blocking on a mutex.
func (w *word) Locks() { if !w.once() { w.slow() } }
func (w *word) slow() { w.mu.Lock() }
// Otherwise is wait-free; if that is 1, it is blocking on a mutex.
func (w *word) Otherwise() { if !w.once() { w.slow() } }
// Besides is wait-free; if that is not 1, it is blocking on a mutex.
func (w *word) Besides() { if !w.once() { w.slow() }; <-w.c }
// Loop is wait-free; the loop is blocking on a mutex.
func (w *word) Loop() func() { return func() { w.slow() } }
// Tries is wait-free.
func (w *word) Tries() bool { return w.mu.TryLock() }
// Waits is blocking.
func (w *word) Waits() { func() { <-w.c }() }
// Looks is wait-free.
func (w *word) Looks() { select { case <-w.c: default: } }
// Stays is blocking.
func (w *word) Stays() { select { case <-w.c: } }
// Method is blocking.
func (w *word) Method() func() { return w.mu.Lock }
type waiter interface { wait(); once() bool }
func (w *word) wait() { <-w.c }
type other struct{}
func (other) wait() {}
// Ours is blocking.
func Ours(w waiter) { w.wait() }
// Theirs is wait-free.
func Theirs(w interface { Once() bool }) { w.Once() }
`)
	g := newCallGraph([]*typed.Package{p})
	g.excused = []excuse{{"p.word.", "p.word.slow", "if that is not 1"}}
	worse := map[string]int{"Otherwise": blocking, "Besides": blocking} // than what they say
	checked := 0
	for f, b := range g.bodies {
		if want, cases, ok := says(b.decl.Doc.Text()); ok {
			checked++
			if does, ok := worse[f.Name()]; ok {
				want = does
			}
			if got, why := g.class(f, cases); got != want {
				t.Errorf("%s is %s, want %s: %v", f.Name(), classes[got], classes[want], why)
			}
		}
	}
	if checked != 16 {
		t.Errorf("checked %d functions", checked)
	}
}
