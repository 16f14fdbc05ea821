package settings_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	ab "github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/atomicbreaker/settings"
)

func TestParsePolicy(t *testing.T) {
	for text, want := range map[string]ab.Policy{
		"Consecutive(5)":                     ab.Consecutive(5),
		"KOfN(5, 10)":                        ab.KOfN(5, 10),
		"FailureRate(0.5, 20, 10s)":          ab.FailureRate(0.5, 20, 10*time.Second),
		"FailureCount(9, 1m)":                ab.FailureCount(9, time.Minute),
		"SlowRate(0.5, 2s, 20, 1m0s)":        ab.SlowRate(0.5, 2*time.Second, 20, time.Minute),
		"AnyOf(KOfN(1,2),AnyOf(KOfN(3, 4)))": ab.AnyOf(ab.KOfN(1, 2), ab.AnyOf(ab.KOfN(3, 4))),
		"KOfN(5,10)":                         ab.KOfN(5, 10),
		"\n\tKOfN\u00a0(\r\n5 , 10\t)\n":     ab.KOfN(5, 10),

		"AnyOf(\n\tConsecutive(5),\n\tFailureCount(9, 1h)\n)\n": ab.AnyOf(ab.Consecutive(5), ab.FailureCount(9, time.Hour)),
		"FailureRate(1e-3, 20, 1.5h)":                           ab.FailureRate(0.001, 20, 90*time.Minute),
		"SlowRate(.5, 0, 20, 1m)":                               ab.SlowRate(0.5, 0, 20, time.Minute),
	} {
		if got, err := settings.ParsePolicy(text); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %v, %v, want %v", text, got, err, want)
		}
	}
}

// An error names what is wrong, and where.
func TestParseWrongPolicies(t *testing.T) {
	const known = "must be one of Consecutive, KOfN, FailureRate, FailureCount, SlowRate, AnyOf"
	for text, want := range map[string]string{
		"":                                       `"" ` + known,
		"5":                                      `"5" ` + known,
		"consecutive(5)":                         `"consecutive" ` + known,
		"AnyOf(Consecutive(5), Conse cutive(6))": `argument 2 of AnyOf(policy, ...): "Conse cutive" ` + known,
		"AnyOf(":                                 `"AnyOf(" must be AnyOf(policy, ...)`,
		"AnyOf(,)":                               `argument 1 of AnyOf(policy, ...): "" ` + known,
		"AnyOf(Consecutive(5),)":                 `argument 2 of AnyOf(policy, ...): "" ` + known,
		"(5)":                                    `"" ` + known,
		"KOfN":                                   `"KOfN" must be KOfN(k, n)`,
		"KOfN 5, 10":                             `"KOfN 5, 10" ` + known,
		"KOfN, (5, 10)":                          `"KOfN," ` + known,
		"KOfN()":                                 `"KOfN()" must be KOfN(k, n)`,
		"KOfN(5)":                                `"KOfN(5)" must be KOfN(k, n)`,
		"KOfN(5, 10, 15)":                        `"KOfN(5, 10, 15)" must be KOfN(k, n)`,
		"KOfN(5, 10":                             `"KOfN(5, 10" must be KOfN(k, n)`,
		"AnyOf(KOfN(5, 10":                       `"AnyOf(KOfN(5, 10" must be AnyOf(policy, ...)`,
		"AnyOf(KOfN(5, 10)":                      `argument 1 of AnyOf(policy, ...): "KOfN(5, 10" must be KOfN(k, n)`,
		"AnyOf(KOfN(5, 10) KOfN(6, 10))":         `argument 1 of AnyOf(policy, ...): "KOfN(5, 10) KOfN(6, 10)" must be KOfN(k, n)`,
		"AnyOf(KOfN(5, 10)), (KOfN(6, 10))":      `argument 1 of AnyOf(policy, ...): "KOfN(5, 10)), (KOfN(6, 10)" must be KOfN(k, n)`,
		"KOfN(5, 10) or Consecutive(5)":          `argument 2 of KOfN(k, n): strconv.Atoi: parsing "10) or Consecutive(5": invalid syntax`,
		"KOfN(5, 10))":                           `argument 2 of KOfN(k, n): strconv.Atoi: parsing "10)": invalid syntax`,
		"KOfN(5, x)":                             `argument 2 of KOfN(k, n): strconv.Atoi: parsing "x": invalid syntax`,
		"KOfN(x, y)":                             `argument 1 of KOfN(k, n): strconv.Atoi: parsing "x": invalid syntax`,
		"KOfN(, 5)":                              `argument 1 of KOfN(k, n): strconv.Atoi: parsing "": invalid syntax`,
		"Consecutive(1e3)":                       `argument 1 of Consecutive(n): strconv.Atoi: parsing "1e3": invalid syntax`,
		"Consecutive(5 5)":                       `argument 1 of Consecutive(n): strconv.Atoi: parsing "5 5": invalid syntax`,
		"Consecutive(99999999999999999999)":      `argument 1 of Consecutive(n): strconv.Atoi: parsing "99999999999999999999": value out of range`,
		"Consecutive(KOfN(1, 2))":                `argument 1 of Consecutive(n): strconv.Atoi: parsing "KOfN(1, 2)": invalid syntax`,
		"FailureRate(50%, 20, 10s)":              `argument 1 of FailureRate(ratio, minCalls, window): strconv.ParseFloat: parsing "50%": invalid syntax`,
		"FailureRate(1e999, 20, 10s)":            `argument 1 of FailureRate(ratio, minCalls, window): strconv.ParseFloat: parsing "1e999": value out of range`,
		"FailureRate(0.5, 20, 10)":               `argument 3 of FailureRate(ratio, minCalls, window): time: missing unit in duration "10"`,
		"FailureCount(5, 1d)":                    `argument 2 of FailureCount(n, window): time: unknown unit "d" in duration "1d"`,
		"FailureCount(5, )":                      `argument 2 of FailureCount(n, window): time: invalid duration ""`,
	} {
		want = fmt.Sprintf("settings: policy %q: %s", text, want)
		if p, err := settings.ParsePolicy(text); p != nil || err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, %v\nwant %v", p, err, want)
		}
	}
}

// One text has no more policies than it should, side by side or nested.
func TestParseManyPolicies(t *testing.T) {
	nested := func(n int) string {
		return strings.Repeat("AnyOf(", n-1) + "Consecutive(1)" + strings.Repeat(")", n-1)
	}
	many := func(n int) string {
		return "AnyOf(" + strings.Repeat("Consecutive(1), ", n-2) + "Consecutive(1))"
	}
	for _, text := range []func(int) string{nested, many} {
		if p, err := settings.ParsePolicy(text(64)); err != nil || p.String() != text(64) {
			t.Errorf("64 policies: %v", err)
		}
		for _, n := range []int{65, 100_000} {
			if _, err := settings.ParsePolicy(text(n)); err == nil || !strings.Contains(err.Error(), "must be among the first 64 policies") {
				t.Errorf("%d policies: %v", n, err)
			}
		}
	}
}

// A policy that New accepts is what its String is parsed to, and the others are
// the same error.
func TestPoliciesAreReadBack(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	right := 0
	rounds := 100_000
	if testing.Short() {
		rounds /= 10
	}
	for range rounds {
		p := randomPolicy(r, 2)
		_, want := ab.New(ab.Config{Policy: p})
		got, err := settings.ParsePolicy(p.String())
		if want != nil {
			if got != nil || err == nil || err.Error() != want.Error() {
				t.Fatalf("%v: %v, %v, want %v", p, got, err, want)
			}
			continue
		}
		if right++; err != nil || !reflect.DeepEqual(got, p) {
			t.Fatalf("%v: %v, %v", p, got, err)
		}
	}
	if right < rounds/4 {
		t.Errorf("only %d policies are right", right)
	}
}

// randomPolicy returns a policy that may be wrong, and AnyOf nested to a depth.
func randomPolicy(r *rand.Rand, depth int) ab.Policy {
	number := func() int {
		switch r.IntN(20) {
		case 0:
			return int(r.Uint64())
		case 1:
			return [...]int{0, -1, math.MaxInt, math.MinInt, math.MaxInt32}[r.IntN(5)]
		}
		return 1 + r.IntN(32)
	}
	ratio := func() float64 {
		switch r.IntN(20) {
		case 0:
			return math.Float64frombits(r.Uint64())
		case 1:
			return [...]float64{0, math.NaN(), math.Inf(1), math.Inf(-1), 1, 1e-300, 5e-324}[r.IntN(7)]
		}
		return r.Float64()
	}
	duration := func() time.Duration {
		switch r.IntN(20) {
		case 0:
			return time.Duration(r.Uint64())
		case 1:
			return [...]time.Duration{0, -1, math.MaxInt64, math.MinInt64, 1}[r.IntN(5)]
		}
		return time.Duration(1 + r.Int64N(1<<r.IntN(62)))
	}
	switch r.IntN(5 + min(depth, 1)) {
	case 0:
		return ab.Consecutive(number())
	case 1:
		return ab.KOfN(number(), number())
	case 2:
		return ab.FailureRate(ratio(), number(), duration())
	case 3:
		return ab.FailureCount(number(), duration())
	case 4:
		return ab.SlowRate(ratio(), duration(), number(), duration())
	}
	policies := []ab.Policy{}
	for range r.IntN(4) {
		policies = append(policies, randomPolicy(r, depth-1))
	}
	return ab.AnyOf(policies...)
}

// Every function of atomicbreaker that makes a policy is one that ParsePolicy
// knows, unless it takes a function, which has no text form.
func TestAllPoliciesCanBeParsed(t *testing.T) {
	files, err := filepath.Glob("../*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || !makesAPolicy(f) {
				continue
			}
			found++
			if _, err := settings.ParsePolicy(f.Name.Name); !strings.Contains(err.Error(), "must be "+f.Name.Name+"(") {
				t.Errorf("%s: ParsePolicy does not know it: %v", f.Name.Name, err)
			}
		}
	}
	if found < 6 {
		t.Errorf("the test sees %d policies", found)
	}
}

// makesAPolicy reports whether a function is exported, returns a Policy and
// nothing else, and takes no function.
func makesAPolicy(f *ast.FuncDecl) bool {
	if f.Recv != nil || !f.Name.IsExported() || f.Type.Results.NumFields() != 1 {
		return false
	}
	for _, p := range f.Type.Params.List {
		if _, ok := p.Type.(*ast.FuncType); ok {
			return false
		}
	}
	result, ok := f.Type.Results.List[0].Type.(*ast.Ident)
	return ok && result.Name == "Policy"
}

// FuzzParsePolicy parses texts: nothing panics, and what is parsed is a policy
// that New accepts and that its String is parsed to again.
func FuzzParsePolicy(f *testing.F) {
	for _, text := range []string{
		"", "Consecutive(5)", " KOfN ( 5,10 ) ", "KOfN(5, 3)", "FailureRate(0.5, 20, 10s)", "FailureRate(0x1p-2, 20, 1.5h)", "FailureCount(9, 1m)",
		"SlowRate(1e-300, 2s, 20, 1m0s)", "AnyOf(Consecutive(5), AnyOf(KOfN(1, 2),\nFailureCount(9, 2µs)))", "AnyOf()", "AnyOf(((", "Consecutive(33", "),(",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := settings.ParsePolicy(text)
		if (p == nil) == (err == nil) {
			t.Fatalf("%v, %v", p, err)
		}
		if err != nil {
			return
		}
		if again, err := settings.ParsePolicy(p.String()); err != nil || !reflect.DeepEqual(again, p) || again.String() != p.String() {
			t.Fatalf("%v becomes %v, %v", p, again, err)
		}
		if _, err := ab.New(ab.Config{Policy: p}); err != nil {
			t.Fatal(err)
		}
	})
}
