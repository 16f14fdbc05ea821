package repotest

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// fastPathsOf is the version of the compiler that the records are of. Another
// inlines otherwise.
const fastPathsOf = "go1.26"

// compiled is what a disassembly says of a function, or of all instances of a
// generic one for keys that are strings.
type compiled struct {
	stack int             // bytes, without what its caller has pushed
	calls map[string]bool // of functions by their names, but for those that end the program or grow the stack
}

// A record is a line of a block in a DESIGN.md that begins with ```fastpath:
//
//	function: 64 bytes; calls; | calls that the usual case does without
type record struct {
	where, function string
	compiled
}

var recordLine = regexp.MustCompile(`^(\S+): (\d+) bytes;([^|]*)(?:\|(.*))?$`)

// What the fast paths call, and how much stack they take, is what the designs say:
// a layer more would change no count of operations on shared words.
func fastPaths(t *testing.T, program string) {
	if runtime.GOARCH != "amd64" || !strings.HasPrefix(runtime.Version(), fastPathsOf) {
		t.Skipf("the records are of %s for amd64", fastPathsOf)
	}
	out, err := goTool(".", "tool", "objdump", "-s", modulePath+"/|^hash/maphash", program)
	if err != nil {
		t.Fatal(err)
	}
	functions := disassembled(out)
	var records []record
	for _, pkg := range append([]string{"internal/table"}, public...) {
		found, err := fastPathRecords(filepath.Join(pkg, "DESIGN.md"))
		if err != nil {
			t.Fatal(err)
		}
		if len(found) == 0 {
			t.Errorf("%s/DESIGN.md records no fast path", pkg)
		}
		records = append(records, found...)
	}
	for _, r := range records {
		is, ok := functions[r.function]
		switch {
		case !ok:
			t.Errorf("%s: the consumer has no function %s", r.where, r.function)
		case is.stack != r.stack || !maps.Equal(is.calls, r.calls):
			more, less := minus(is.calls, r.calls), minus(r.calls, is.calls)
			t.Errorf("%s: %s takes %d bytes of stack, and not %d; it also calls %v, and no longer %v",
				r.where, r.function, is.stack, r.stack, more, less)
		}
	}
}

// minus returns the names in a that are not in b.
func minus(a, b map[string]bool) (names []string) {
	for name := range a {
		if !b[name] {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// fastPathRecords returns the records in a file.
func fastPathRecords(name string) (records []record, err error) {
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		return nil, err
	}
	inside := false
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "```") {
			inside = line == "```fastpath"
			continue
		}
		if !inside {
			continue
		}
		m := recordLine.FindStringSubmatch(line)
		if m == nil {
			return nil, fmt.Errorf("%s: not a record of a fast path: %s", name, line)
		}
		r := record{name, m[1], compiled{calls: map[string]bool{}}}
		fmt.Sscan(m[2], &r.stack)
		for _, calls := range m[3:] {
			for call := range strings.SplitSeq(calls, ",") {
				if call = strings.TrimSpace(call); call != "" {
					r.calls[call] = true
				}
			}
		}
		records = append(records, r)
	}
	return records, nil
}

var (
	textLine  = regexp.MustCompile(`^TEXT (.*)\(SB\)`)
	callLine  = regexp.MustCompile(`\tCALL (.*)\(SB\)`)
	frameLine = regexp.MustCompile(`\t(SUBQ|ADDQ) \$(-?0x[0-9a-f]+), SP`)
	noReturn  = regexp.MustCompile(`^runtime\.(morestack|panic|gopanic|goPanic)`)
)

// disassembled returns the functions in what go tool objdump has printed.
func disassembled(out string) map[string]compiled {
	functions := map[string]compiled{}
	var name string // "" while a function is passed over
	framed := false
	for line := range strings.Lines(out) {
		if m := textLine.FindStringSubmatch(line); m != nil {
			name, framed = "", false
			if !strings.Contains(m[1], "[") || strings.Contains(m[1], "[go.shape.string") {
				if name = plainName(m[1]); functions[name].calls == nil {
					functions[name] = compiled{calls: map[string]bool{}}
				}
			}
			continue
		}
		if name == "" {
			continue
		}
		f := functions[name]
		if m := frameLine.FindStringSubmatch(line); m != nil && !framed {
			framed = true
			var n int
			fmt.Sscanf(m[2], "%v", &n)
			f.stack = max(f.stack, n, -n)
		}
		if m := callLine.FindStringSubmatch(line); m != nil {
			if callee := plainName(m[1]); !noReturn.MatchString(callee) {
				f.calls[callee] = true
			}
		}
		functions[name] = f
	}
	return functions
}

// plainName returns the name of a function without what it is instantiated for and
// the path to its package.
func plainName(name string) string {
	var b strings.Builder
	depth := 0
	for _, c := range name {
		switch {
		case c == '[':
			depth++
		case c == ']':
			depth--
		case depth == 0:
			b.WriteRune(c)
		}
	}
	plain := b.String()
	return plain[strings.LastIndexByte(plain, '/')+1:]
}
