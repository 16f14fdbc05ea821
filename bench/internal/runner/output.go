package runner

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// lineWriter calls line for each line written to it and keeps them all.
type lineWriter struct {
	line    func(string)
	pending []byte
	all     bytes.Buffer
}

func (w *lineWriter) Write(p []byte) (int, error) {
	w.all.Write(p)
	w.pending = append(w.pending, p...)
	for {
		i := bytes.IndexByte(w.pending, '\n')
		if i < 0 {
			return len(p), nil
		}
		w.line(string(w.pending[:i]))
		w.pending = w.pending[i+1:]
	}
}

func (w *lineWriter) flush() {
	if len(w.pending) > 0 {
		w.line(string(w.pending))
		w.pending = nil
	}
}

// result is a line of results.
type result struct {
	line       string
	name       string
	iterations int
}

// parseResult reads a line of results.
func parseResult(line string) (result, bool) {
	fields := strings.Fields(line)
	if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
		return result{}, false
	}
	n, err := strconv.Atoi(fields[1])
	if err != nil {
		return result{}, false
	}
	for i := 3; i < len(fields); i += 2 {
		if fields[i] == "ns/op" {
			return result{line, fields[0], n}, true
		}
	}
	return result{}, false
}

// isHeader reports whether line is configuration that package testing prints
// before results.
func isHeader(line string) bool {
	key, _, ok := strings.Cut(line, ": ")
	return ok && (key == "goos" || key == "goarch" || key == "pkg" || key == "cpu")
}

// failure makes one error of the output of a failed process.
func failure(output string, exit error) error {
	const tail = 40 // lines; a panic's first goroutine fits
	var name string
	var kept []string
	for line := range strings.Lines(output) {
		line = strings.TrimRight(line, "\n")
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), "--- FAIL: "); ok {
			// The innermost benchmark is printed first.
			if fields := strings.Fields(rest); name == "" && len(fields) > 0 {
				name = fields[0]
			}
		}
		if _, ok := parseResult(line); !ok && !isHeader(line) && line != "FAIL" {
			kept = append(kept, line)
		}
	}
	if len(kept) > tail {
		kept = append(kept[:tail], "…")
	}
	text := strings.TrimSpace(strings.Join(kept, "\n"))
	if name == "" {
		return fmt.Errorf("bench: the benchmarks failed: %w\n%s", exit, text)
	}
	return fmt.Errorf("bench: %s failed\n%s", name, text)
}
