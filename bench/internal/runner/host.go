package runner

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// WriteHeader writes the file configuration of a raw result file: what was
// run, where, how and when. The machine's name is not part of it.
func WriteHeader(ctx context.Context, w io.Writer, b *Binary, c *Calibration, p Plan, command string, now time.Time) error {
	lines := append([]string(nil), c.Header...)
	lines = append(lines, "go: "+strings.TrimPrefix(runtime.Version(), "go"))
	if commit := commit(ctx, b.dir); commit != "" {
		lines = append(lines, "commit: "+commit)
	}
	lines = append(lines,
		"host: "+host(ctx, c.Header),
		"date: "+now.UTC().Format(time.RFC3339),
		"command: "+command,
	)
	if load := load(); load != "" {
		lines = append(lines, "load: "+load)
	}
	if p.Skip != "" {
		lines = append(lines, "skip: "+p.Skip)
	}
	if _, err := fmt.Fprintf(w, "%s\n\n", strings.Join(lines, "\n")); err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	return nil
}

// WritePart writes the file configuration that the results to come have of their
// own.
func WritePart(w io.Writer, p Plan) error {
	lines := "benchtime: " + p.Samples() + "\n"
	if len(p.LeftOut) > 0 {
		lines += "left-out: " + strings.Join(p.LeftOut, ", ") + "\n"
	}
	if _, err := fmt.Fprintf(w, "%s\n", lines); err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	return nil
}

// commit returns the checked-out commit, marked if files differ from it, or
// "" outside of a repository.
func commit(ctx context.Context, dir string) string {
	cmd := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*")
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// load returns the load averages over 1, 5 and 15 minutes, where the system has
// them. Building and calibrating is part of the first.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return ""
	}
	fields := strings.Fields(string(text))
	return strings.Join(fields[:min(3, len(fields))], " ")
}

// host describes the machine: processor, cores, kernel, distribution.
func host(ctx context.Context, header []string) string {
	parts := []string{fmt.Sprintf("%d logical CPUs", runtime.NumCPU())}
	for _, line := range header {
		if cpu, ok := strings.CutPrefix(line, "cpu: "); ok {
			parts = append([]string{strings.TrimSpace(cpu)}, parts...)
		}
	}
	if out, err := exec.CommandContext(ctx, "uname", "-sr").Output(); err == nil {
		parts = append(parts, strings.TrimSpace(string(out)))
	} else {
		parts = append(parts, runtime.GOOS)
	}
	if f, err := os.Open("/etc/os-release"); err == nil {
		defer f.Close()
		for s := bufio.NewScanner(f); s.Scan(); {
			if name, ok := strings.CutPrefix(s.Text(), "PRETTY_NAME="); ok {
				parts = append(parts, strings.Trim(name, `"`))
			}
		}
	}
	return strings.Join(parts, ", ")
}
