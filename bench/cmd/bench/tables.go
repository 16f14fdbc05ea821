package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/latchfree/latchfree/bench/internal/report"
)

// tables prints what benchstat, at the version pinned in go.mod, says about
// the raw file without what is too noisy: for each structure one table for each other implementation,
// because all of them side by side do not fit a terminal.
func tables(ctx context.Context, r *report.Report, raw string, w io.Writer) error {
	lines, err := os.ReadFile(raw)
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	quiet, err := os.CreateTemp("", "latchfree-bench-*.txt")
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	defer os.Remove(quiet.Name())
	defer quiet.Close()
	if _, err := quiet.WriteString(r.Quiet(string(lines))); err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	for _, s := range r.Structures {
		for _, other := range s.Others(r.Baseline) {
			args := benchstatArgs(s, other, quiet.Name())
			out, err := exec.CommandContext(ctx, "go", args...).CombinedOutput()
			if err != nil {
				return fmt.Errorf("bench: go tool benchstat: %w\n%s", err, out)
			}
			// Names at GOMAXPROCS 1 carry no number, so benchstat has none.
			out = bytes.ReplaceAll(out, []byte("/gomaxprocs: \n"), []byte("/gomaxprocs: 1\n"))
			if _, err := fmt.Fprintf(w, "%s: %s against %s\n%s\n", s.Name, report.Subject, other, out); err != nil {
				return fmt.Errorf("bench: %w", err)
			}
		}
	}
	return nil
}

// benchstatArgs returns the arguments for one table, with the other
// implementation as the base.
func benchstatArgs(s *report.Structure, other, raw string) []string {
	var ops []string
	for _, op := range s.Ops {
		if slices.ContainsFunc(op.Cases, func(c *report.Case) bool {
			return c.Row(report.Subject) != nil && c.Row(other) != nil
		}) {
			ops = append(ops, op.Name)
		}
	}
	return []string{
		"tool", "benchstat",
		"-filter", ".unit:sec/op .name:(" + strings.Join(ops, " OR ") + ")",
		"-col", fmt.Sprintf("/impl@(%s %s)", other, report.Subject),
		"-table", "/gomaxprocs",
		"-row", ".fullname",
		"-ignore", ".config",
		raw,
	}
}
