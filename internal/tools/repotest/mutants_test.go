package repotest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// sequentially are the operators that break what one goroutine does; all others break
// concurrency.
var sequentially = []string{"negated", "operand", "boundary", "arithmetic", "constant", "result", "removed"}

// isMutant reports whether a line is the key of a mutant whose concurrency is broken.
func isMutant(line string) bool {
	words := strings.SplitN(line, ": ", 3)
	return len(words) == 3 && !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "\t") && !slices.Contains(sequentially, words[1])
}

// fates says how many mutants of a package met which fate.
type fates struct{ killed, doubted, reviewed, unjudged, same int }

func (f fates) tried() int { return f.killed + f.doubted + f.reviewed + f.unjudged + f.same }

// readFates counts what is in the record of a package's mutants, and which of
// them have been reviewed. In both, lines without indentation come before what they are
// about: verdicts before mutants, mutants before reasons. Of sequential mutants the record has
// the numbers.
func readFates(pkg string) (f, sequential fates, err error) {
	file := strings.ReplaceAll(pkg, "/", "-") + ".txt"
	record, err := os.ReadFile(filepath.Join(root, "internal/tools/mutants/record", file))
	if err != nil && !os.IsNotExist(err) { // nothing has been tried so far
		return f, sequential, err
	}
	reviewed, err := os.ReadFile(filepath.Join(root, "internal/tools/mutants/reviewed", file))
	if err != nil {
		return f, sequential, err
	}
	listed := map[string]bool{}
	for line := range strings.Lines(string(reviewed)) {
		if isMutant(line) {
			listed[line] = true
		}
	}
	f.reviewed = len(listed)
	verdict, doubted := "", false
	for line := range strings.Lines(string(record)) {
		key, ok := strings.CutPrefix(line, "\t")
		switch {
		case !ok:
			verdict, _, _ = strings.Cut(line, " ")
			doubted = strings.HasSuffix(line, " -\n") // see internal/tools/mutants/record.go
			if verdict == "sequential" {
				if sequential, err = parseFates(line); err != nil {
					return f, sequential, err
				}
			}
		case !isMutant(key):
		case listed[key]:
		case verdict == "same":
			f.same++
		case verdict == "lived":
			f.unjudged++
		case doubted:
			f.doubted++
		default:
			f.killed++
		}
	}
	return f, sequential, nil
}

// parseFates reads the line about sequential mutants: a word, a hash, then words and numbers.
func parseFates(line string) (f fates, err error) {
	words := strings.Fields(line)
	for fate := range slices.Chunk(words[2:], 2) {
		n, err := strconv.Atoi(fate[len(fate)-1])
		if err != nil {
			return f, fmt.Errorf("%s: %w", line, err)
		}
		switch fate[0] {
		case "doubted":
			f.doubted = n
		case "reviewed":
			f.reviewed = n
		case "lived":
			f.unjudged = n
		case "same":
			f.same = n
		default: // the layer that killed them
			f.killed += n
		}
	}
	return f, nil
}

// The other table of VERIFICATION.md sums up what became of mutants.
func TestVerificationCountsMutants(t *testing.T) {
	var table strings.Builder
	// Live and reviewed are also those that a campaign with -trust has not tried again.
	row := func(name string, f fates) {
		fmt.Fprintf(&table, "| %s | %s | %s | %s | %s | %s | %s |\n", name, grouped(f.tried()), grouped(f.killed),
			grouped(f.doubted), grouped(f.reviewed), grouped(f.unjudged), grouped(f.same))
	}
	table.WriteString("| package | tried | killed | killed, in doubt | live, reviewed | live, not judged | same machine code |\n|---|---:|---:|---:|---:|---:|---:|\n")
	for _, pkg := range explored {
		f, sequential, err := readFates(pkg)
		if err != nil {
			t.Fatal(err)
		}
		if f.killed+f.doubted+f.unjudged+f.same == 0 { // no record: what was found is that those live
			fmt.Fprintf(&table, "| `%s` | not yet | | | %d | | |\n", pkg, f.reviewed)
			continue
		}
		row("`"+pkg+"`", f)
		if sequential.tried() > 0 {
			row("the same, sequential", sequential)
		}
	}
	pageHas(t, "VERIFICATION.md", "mutants", table.String())
}
