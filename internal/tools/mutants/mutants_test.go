package main

import (
	"bytes"
	"flag"
	"go/ast"
	"go/types"
	"os"
	"strings"
	"testing"
)

const fixture = "internal/tools/mutants/testdata/fixture"

var update = flag.Bool("update", false, "rewrite the golden files")

// inPlace returns a toolchain that works on the module itself.
func inPlace(t *testing.T) *toolchain {
	return &toolchain{root: "../../..", temp: t.TempDir()}
}

// Every operator, what it makes of each kind of code, and nothing of what does
// not compile.
func TestOperators(t *testing.T) {
	target, err := inPlace(t).load(fixture)
	if err != nil {
		t.Fatal(err)
	}
	for golden, ops := range map[string]operators{
		"testdata/concurrency.golden": concurrency,
		"testdata/sequential.golden":  sequential,
	} {
		var got bytes.Buffer
		for _, m := range target.mutants(ops) {
			got.WriteString(m.place() + " " + m.key() + "\n" + m.diff())
		}
		if *update {
			if err := os.WriteFile(golden, got.Bytes(), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(want, got.Bytes()) {
			t.Errorf("%s is not what was made; look at go test -update and git diff", golden)
		}
	}
}

// whole lists methods of shared types that change something and are not broken otherwise
// than that their calls are left out, or at another place.
var whole = map[string]bool{
	"Store": true, "Lock": true, "Unlock": true, "Fire": true, "TryFire": true, "Wake": true, "Go": true,
	"Init": true, "Spread": true,
}

// There is no method of a shared type that nobody has thought of: it can be broken, or
// changes nothing.
func TestEveryMethodIsKnown(t *testing.T) {
	target, err := inPlace(t).load(fixture)
	if err != nil {
		t.Fatal(err)
	}
	for full, family := range shared {
		if strings.HasPrefix(full, "github.com/puzpuzpuz/") {
			continue // internal/table alone calls it, and not all of it
		}
		dot := strings.LastIndex(full, ".")
		p, err := target.from.Import(full[:dot])
		if err != nil {
			t.Fatal(err)
		}
		methods := types.NewMethodSet(types.NewPointer(p.Scope().Lookup(full[dot+1:]).Type()))
		for m := range methods.Methods() {
			name := m.Obj().Name()
			if how := brokenly[family.String()+name]; m.Obj().Exported() && how == nil && !looks[name] && !quiet[name] && !whole[name] {
				t.Errorf("%s.%s", full, name)
			}
		}
	}
	for called, ways := range brokenly {
		for _, how := range ways {
			p, err := target.from.Import(tools)
			if err != nil {
				t.Fatal(err)
			}
			if f := title(how) + called; p.Scope().Lookup(f) == nil {
				t.Errorf("there is no broken.%s", f)
			}
		}
	}
}

// A mutant's key stays the same when its lines move.
func TestKeysDoNotKnowLines(t *testing.T) {
	target, err := inPlace(t).load(fixture)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, m := range append(target.mutants(concurrency), target.mutants(sequential)...) {
		if key := m.key(); seen[key] || strings.ContainsAny(key, "\n\t") || operatorOf(key) == "" {
			t.Errorf("key %q", key)
		}
		seen[m.key()] = true
	}
}

// A function checked by itself compiles where its package does, for all that operators make
// and for what only one of them can tell.
func TestBuildsFunction(t *testing.T) {
	target, err := inPlace(t).load(fixture)
	if err != nil {
		t.Fatal(err)
	}
	k := &maker{target: target}
	target.scopes(func(s *source, d ast.Decl) {
		k.source, k.scope = s, d
		for _, op := range append(concurrency, sequential...) {
			op(k)
		}
		if f, ok := d.(*ast.FuncDecl); ok {
			k.add("unused", "variable", edit{f.Body.Rbrace, f.Body.Rbrace, "; unused := 1;"})
			k.add("unused", "imports", edit{f.Body.Lbrace, f.Body.Rbrace, `{ panic("") `})
			k.add("other", "result", edit{f.Body.Rbrace, f.Body.Rbrace, "; return 1, 2, 3;"})
		}
	})
	fails := 0
	for _, m := range k.made {
		m.apply()
		got, want := target.builds(m.source, m.text, m.scope), target.builds(m.source, m.text, nil)
		if got != want {
			t.Errorf("%s builds: %v, by itself: %v", m.key(), want, got)
		}
		if !want {
			fails++
		}
	}
	if fails < 10 || fails == len(k.made) {
		t.Errorf("%d of %d do not build", fails, len(k.made))
	}
}
