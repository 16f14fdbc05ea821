package main

import (
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/latchfree/latchfree/internal/tools/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

// Every structure has a row, whose numbers are numbers.
func TestTable(t *testing.T) {
	var text strings.Builder
	run(&text, io.Discard, 100, 1000)
	rows := strings.Split(strings.TrimSpace(text.String()), "\n")
	if len(rows) != len(subjects)+2 {
		t.Fatalf("%d rows:\n%s", len(rows), &text)
	}
	row := regexp.MustCompile(`^\| \w+ \| [\w.]+ \| \d+ \| \d+ \| \d+ \| \d+\.\d \| \d+\.\d \|$`)
	for _, r := range rows[2:] {
		if !row.MatchString(r) {
			t.Error(r)
		}
	}
	if thousands(1234567) != "1,234,567" || thousands(100) != "100" {
		t.Error(thousands(1234567), thousands(100))
	}
}
