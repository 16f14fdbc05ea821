package repotest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/latchfree/latchfree/internal/tools/svg"
)

// badge is a fact in two words, and where it comes from.
type badge struct{ name, subject, fact, source string }

// Each badge of README.md is a fact that is found here, but for that of the workflow, which
// GitHub draws.
func TestVerificationBadges(t *testing.T) {
	const workflow = "test.yml"
	jobs, err := os.ReadFile(filepath.Join(root, ".github/workflows", workflow))
	if err != nil {
		t.Fatal(err)
	}
	if oldest := fmt.Sprintf("go: [%q, oldstable, stable]", lowestGo(t)); !strings.Contains(string(jobs), oldest) {
		t.Errorf("%s does not test with %s", workflow, oldest)
	}
	address := "https://" + modulePath + "/actions/workflows/" + workflow
	line := fmt.Sprintf("[![test](%s/badge.svg?branch=main)](%s)", address, address)
	for _, b := range []badge{
		{"go", "Go", strings.TrimSuffix(lowestGo(t), ".0") + " or later", "go.mod"},
		{"dependencies", "dependencies", dependencies(t), "internal/tools/repotest/consumer_test.go"},
		{"licence", "licence", licence(t), "LICENSE"},
	} {
		file := "docs/badge-" + b.name + ".svg"
		line += fmt.Sprintf(" [<img src=%q height=\"20\" alt=%q>](%s)", file, b.subject+": "+b.fact, b.source)
		fileIs(t, file, b.draw())
	}
	pageHas(t, "README.md", "badges", line+"\n")
}

// draw returns the picture, in colors that can be read on a light and on a dark page.
func (b badge) draw() string {
	const height, margin, character = 20, 9, 6.3 // the widths of characters are those of a wide font
	left := 2*margin + character*float64(utf8.RuneCountInString(b.subject))
	right := 2*margin + character*float64(utf8.RuneCountInString(b.fact))
	c := svg.New(left+right, height, b.subject+": "+b.fact)
	c.Style("text{font:11px Verdana,'DejaVu Sans',sans-serif;fill:#fff}.subject{fill:#57606a}.fact{fill:#1f5fbf}")
	c.Rect(0, 0, left, height, "subject")
	c.Rect(left, 0, right, height, "fact")
	c.Text(left/2, 14, svg.Middle, "", b.subject)
	c.Text(left+right/2, 14, svg.Middle, "", b.fact)
	return c.String() + "\n"
}

// lowestGo returns the release that go.mod asks for.
func lowestGo(t *testing.T) string {
	t.Helper()
	out, err := goTool(root, "list", "-m", "-f", "{{.GoVersion}}")
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out)
}

// dependencies counts and names the modules that all that can be imported needs.
func dependencies(t *testing.T) string {
	t.Helper()
	args := []string{"list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}}{{end}}{{end}}"}
	for _, dir := range importable(t) {
		args = append(args, "./"+dir)
	}
	out, err := goTool(root, args...)
	if err != nil {
		t.Fatal(err)
	}
	modules := strings.Fields(out)
	slices.Sort(modules)
	modules = slices.Compact(modules)
	names := make([]string, len(modules))
	for i, m := range modules {
		names[i] = m[strings.LastIndex(strings.TrimSuffix(m, "/v3"), "/")+1:]
	}
	return fmt.Sprintf("%d, %s", len(modules), strings.Join(names, " "))
}

func licence(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "LICENSE"))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`^(\w+) License\n`).FindSubmatch(text)
	if m == nil {
		t.Fatal("LICENSE does not begin with its name")
	}
	return string(m[1])
}
