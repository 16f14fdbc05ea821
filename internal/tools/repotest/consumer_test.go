package repotest

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestConsumer looks at an importer's module, which is built once.
func TestConsumer(t *testing.T) {
	dir := t.TempDir()
	if err := writeConsumer(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := goTool(dir, "mod", "tidy"); err != nil {
		t.Fatal(err)
	}
	t.Run("BuildsOnlyXsync", func(t *testing.T) { buildsOnlyXsync(t, dir) })
	if testing.Short() {
		t.Skip("the program, and go tool objdump, take a minute to build")
	}
	program := filepath.Join(dir, "consumer.exe")
	if _, err := goTool(dir, "build", "-o", program, "."); err != nil {
		t.Fatal(err)
	}
	t.Run("SharedWordsCostOneInstruction", func(t *testing.T) { sharedWordsCostOneInstruction(t, program) })
	t.Run("Allocates", func(t *testing.T) { allocates(t, program) })
	t.Run("FastPaths", func(t *testing.T) { fastPaths(t, program) })
}

// An importer of the four packages builds xsync/v3, and no other module.
func buildsOnlyXsync(t *testing.T, dir string) {
	out, err := goTool(dir, "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", ".")
	if err != nil {
		t.Fatal(err)
	}
	modules := strings.Fields(out)
	slices.Sort(modules)
	modules = slices.Compact(modules)
	want := []string{"example.com/consumer", modulePath, "github.com/puzpuzpuz/xsync/v3"}
	slices.Sort(want)
	if !slices.Equal(modules, want) {
		t.Errorf("the consumer builds packages of\n\t%v\nwant\n\t%v", modules, want)
	}
}

// The compiler implements pointer writes by calls into the runtime, for their
// write barriers, under these names. Direct use of sync/atomic calls them too.
var pointerWrite = regexp.MustCompile(`^sync/atomic\.(CompareAndSwap|Store|Swap)Pointer$`)

// atomicCall matches a call in a disassembly, on any architecture.
var atomicCall = regexp.MustCompile(`\b(?:CALL|BL|JAL) (sync/atomic\..*)\(SB\)`)

// What an importer instantiates contains no call into sync/atomic: each shared
// access is one instruction, in generic code too. See internal/atomics/inline.go.
func sharedWordsCostOneInstruction(t *testing.T, program string) {
	out, err := goTool(".", "tool", "objdump", "-s", modulePath+"/", program)
	if err != nil {
		t.Fatal(err)
	}
	functions, pointerWrites := 0, 0
	current := ""
	for line := range strings.Lines(out) {
		if name, ok := strings.CutPrefix(line, "TEXT "); ok {
			current, _, _ = strings.Cut(name, "(SB)")
			functions++
			continue
		}
		call := atomicCall.FindStringSubmatch(line)
		switch {
		case call == nil:
		case pointerWrite.MatchString(call[1]):
			pointerWrites++
		default:
			where, _, _ := strings.Cut(strings.TrimSpace(line), "\t")
			t.Errorf("%s: %s calls %s", where, current, call[1])
		}
	}
	// The listing is what makes the absence of calls mean anything.
	if functions < 50 || pointerWrites == 0 {
		t.Errorf("disassembled %d functions with %d pointer writes: the test does not see the packages", functions, pointerWrites)
	}
}

// What an importer's calls allocate is what is promised, also if the compiler
// inlines them into a package of the importer's that does not know ours: no test
// of a package itself can see that. See internal/atomics/inline.go, and
// testdata/consumer for the calls.
func allocates(t *testing.T, program string) {
	out, err := exec.Command(program).CombinedOutput()
	if err != nil {
		t.Errorf("%v:\n%s", err, out)
	}
	operations, shapes := 0, 0
	for line := range strings.Lines(string(out)) {
		fmt.Sscanf(line, "%d operations", &operations)
		fmt.Sscanf(line, "%d shapes", &shapes)
	}
	if operations < 100 || shapes < 80 {
		t.Errorf("the consumer mentions %d operations and makes %d calls: it does not try the packages", operations, shapes)
	}
}
