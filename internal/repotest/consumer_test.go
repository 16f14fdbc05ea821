package repotest

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// consumer returns the folder of an importer's module.
func consumer(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := writeConsumer(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := goTool(dir, "mod", "tidy"); err != nil {
		t.Fatal(err)
	}
	return dir
}

// An importer of the four packages builds xsync/v3, and no other module.
func TestConsumerBuildsOnlyXsync(t *testing.T) {
	out, err := goTool(consumer(t), "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", ".")
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
func TestSharedWordsCostOneInstruction(t *testing.T) {
	dir := consumer(t)
	binary := filepath.Join(dir, "consumer.exe")
	if _, err := goTool(dir, "build", "-o", binary, "."); err != nil {
		t.Fatal(err)
	}
	out, err := goTool(".", "tool", "objdump", "-s", modulePath+"/", binary)
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
