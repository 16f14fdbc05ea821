//go:build modelcheck

package mc_test

import (
	"strings"
	"testing"

	"github.com/latchfree/latchfree/internal/tools/mc"
)

// Where MC_MOST cuts an exploration short, the page keeps the number that it has, and a page
// that cannot be right is found out.
func TestMost(t *testing.T) {
	if testing.Short() {
		t.Skip("short runs keep no page")
	}
	t.Setenv("MC_MOST", "2")
	for name, tt := range map[string]struct {
		page  string
		right bool
	}{
		"more":     {"\n## TestMost\n\n| more | 2 | watched | 1,234 | yes |\n\n## TestOther\n\n| more | 2 | watched | 9 | yes |\n", true},
		"not more": {"\n## TestMost\n\n| not more | 2 | watched | 2 | yes |\n", false},
		"unknown":  {"\n## TestOther\n\n| unknown | 2 | watched | 1,234 | yes |\n", false},
	} {
		b := mc.KeepBookBeside(tt.page, func() {
			t.Run(name, func(t *testing.T) {
				if r := mc.Check(t, mc.Config{Operations: "watched"}, watched); r.Schedules != 2 {
					t.Errorf("%s: %v", name, r)
				}
			})
		})
		switch problems := b.Problems(); {
		case !tt.right && (len(problems) != 1 || !strings.Contains(problems[0], "MC_MOST")):
			t.Errorf("%s: problems %q", name, problems)
		case tt.right && (len(problems) != 0 || !strings.Contains(b.Page(t), "| more | 2 | watched | 1,234 | yes |\n")):
			t.Errorf("%s: problems %q, page\n%s", name, problems, b.Page(t))
		}
	}
}
