package repotest

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// sizes says what structures may add to a program: bytes of its file, built with
// -trimpath -ldflags="-s -w" for linux/amd64. Bounds are what was measured and some air: files grow by
// pages of 4,096.
var sizes = []struct {
	structure string
	pkg       string
	use       string // of the structure of values of type V
	first     int64  // a program with one type of values, compared with one with a plain map
	further   int64  // each further type of values
}{
	{
		structure: "Registry",
		pkg:       "shardedregistry",
		use:       "\ttype T = V\n" + registryUse,
		first:     540_000,
		further:   275_000,
	},
	{
		structure: "RegistryOfPointers", // which share their code
		pkg:       "shardedregistry",
		use:       "\ttype T = *V\n" + registryUse,
		first:     510_000,
		further:   80_000,
	},
	{
		structure: "Cache",
		pkg:       "oncecache",
		use:       "\ttype T = V\n" + cacheUse,
		first:     681_000,
		further:   253_000,
	},
	{
		structure: "CacheOfPointers", // which share their code
		pkg:       "oncecache",
		use:       "\ttype T = *V\n" + cacheUse,
		first:     681_000,
		further:   50_000,
	},
	{
		structure: "Group", // of keys of type V
		pkg:       "atomicbreaker",
		use: `
	var g atomicbreaker.Group[V]
	p, err := g.Allow(V{})
	fmt.Println(p.Failure(), err)
	g.RecordFailure(V{})
	g.RecordSuccess(V{})
	fmt.Println(g.State(V{}), g.Len())
	g.Reset(V{})
	g.ResetAll()
`,
		first:   415_000,
		further: 104_000, // a cell's operations are compiled for its type of keys
	},
	{
		structure: "Tracker",
		pkg:       "cowchangeset",
		use: `
	var t cowchangeset.Tracker[V]
	c, _ := t.Start(context.Background())
	t.Record(V{})
	c.Record(V{})
	c.Apply(context.Background(), func(context.Context, cowchangeset.Final[V]) error { return nil })
	for _, e := range c.Entries() {
		fmt.Println(e)
	}
`,
		first:   460_000, // not to be small, but to grow no more unnoticed: 450,560
		further: 97_000,  // 94,208, of which flushes are compiled for each type of entries
	},
}

const registryUse = `
	var zero T
	var r shardedregistry.Registry[string, T]
	r.Create("a", zero)
	r.Put("a", zero)
	r.Update("a", func(v T) (T, error) { return v, nil })
	fmt.Println(r.Get("a"))
	r.Delete("a")
	fmt.Println(r.Len())
	for k, v := range r.All() {
		fmt.Println(k, v)
	}
`

// cacheUse is a use of a Cache of values of type T.
const cacheUse = `
	var v T
	var c oncecache.Cache[string, T]
	c.GetOrCreate("a", func() (T, error) { return v, nil })
	c.GetOrCreateContext(context.Background(), "a", func(context.Context, string) (T, error) { return v, nil })
	c.Set("a", v)
	fmt.Println(c.Get("a"))
	c.Delete("a")
	fmt.Println(c.Len())
	for k, v := range c.All() {
		fmt.Println(k, v)
	}
`

// README.md has the bounds, in KB.
func TestReadmeHasTheSizes(t *testing.T) {
	var table strings.Builder
	table.WriteString("| | the first type of values | each further type |\n|---|--:|--:|\n")
	for _, s := range sizes {
		name, pointers := strings.CutSuffix(s.structure, "OfPointers")
		if pointers {
			name += "[…, *V]"
		}
		fmt.Fprintf(&table, "| `%s` | %d | %d |\n", name, s.first/1000, s.further/1000)
	}
	pageHas(t, "README.md", "sizes", table.String())
}

// TestSizes builds programs with structures of no, one, two and five types of
// values, and compares what each adds with its bound.
func TestSizes(t *testing.T) {
	if testing.Short() {
		t.Skip("builds several programs")
	}
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skip("the bounds are those of linux/amd64")
	}
	if !strings.HasPrefix(runtime.Version(), "go1.26") { // 1.27 adds 100 to 200 KB to the first type
		t.Skip("the bounds are those of Go 1.26")
	}
	dir := t.TempDir()
	if err := writeModule(dir); err != nil {
		t.Fatal(err)
	}
	program := func(name, source string) {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name, "main.go"), []byte(source), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	size := func(name string) int64 {
		file := filepath.Join(dir, name+".exe")
		if _, err := goTool(dir, "build", "-ldflags=-s -w", "-o", file, "./"+name); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	counts := []int{1, 2, 5}
	program("none", sizedProgram("", `	m := map[string]V{"a": {}}
	fmt.Println(m["a"], len(m))
`, 1))
	for _, s := range sizes {
		for _, n := range counts {
			program(fmt.Sprint(s.structure, n), sizedProgram(s.pkg, s.use, n))
		}
	}
	if _, err := goTool(dir, "mod", "tidy"); err != nil {
		t.Fatal(err)
	}
	none := size("none")
	for _, s := range sizes {
		one, two, five := size(s.structure+"1"), size(s.structure+"2"), size(s.structure+"5")
		first, further := one-none, max(two-one, (five-two)/3)
		t.Logf("%s: the first type of values adds %d bytes, each further one up to %d", s.structure, first, further)
		if first > s.first {
			t.Errorf("%s adds %d bytes to a program, want at most %d", s.structure, first, s.first)
		}
		if further > s.further {
			t.Errorf("a further type of values of %s adds %d bytes, want at most %d", s.structure, further, s.further)
		}
	}
}

// sizedProgram returns the source of a program that uses a structure of n types of
// values.
func sizedProgram(pkg, use string, n int) string {
	var b, calls strings.Builder
	b.WriteString("package main\n\nimport (\n")
	if strings.Contains(use, "context.") {
		b.WriteString("\t\"context\"\n")
	}
	b.WriteString("\t\"fmt\"\n")
	if pkg != "" {
		fmt.Fprintf(&b, "\t%q\n", modulePath+"/"+pkg)
	}
	b.WriteString(")\n")
	for i := range n {
		fmt.Fprintf(&b, "\nfunc use%d() {\n\ttype V struct {\n\t\ta, b, c, d, e int\n\t\tf [%d]string\n\t}\n%s}\n", i, i+1, use)
		fmt.Fprintf(&calls, "\tuse%d()\n", i)
	}
	fmt.Fprintf(&b, "\nfunc main() {\n%s}\n", calls.String())
	return b.String()
}
