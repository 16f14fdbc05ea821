//go:build modelcheck

package mc

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
)

// mostVariable names the environment variable that says how many executions of a body Check
// explores at most. Of a larger body it explores the first ones, and takes the rest from the
// committed page, on trust: so make test-all finds a change of what is small, and make modelcheck
// any. CheckCost takes the lines that 64 cores move on trust, which are most of its work. It
// does not hold while the page is written.
const mostVariable = "MC_MOST"

// atMost returns how many executions the environment allows, or 0: any number.
func atMost() int {
	if os.Getenv(updateVariable) != "" || os.Getenv(longVariable) != "" {
		return 0
	}
	n, _ := strconv.Atoi(os.Getenv(mostVariable))
	return n
}

// most returns cfg for as many executions as the environment allows.
func (cfg Config) most() Config {
	if n := atMost(); n > 0 && (cfg.MaxSchedules == 0 || cfg.MaxSchedules > n) {
		cfg.MaxSchedules = n
	}
	return cfg
}

// coresAtMost returns for how many cores CheckCost counts lines.
func coresAtMost() int {
	if atMost() > 0 {
		return 8
	}
	return math.MaxInt
}

// promised returns c, an exploration of the named test that was cut short, with the threads
// and executions that the committed page says it has. If it says none, or not more than were
// found, promised notes that. The caller has locked the book.
func (b *book) promised(name string, c check) check {
	test, _, _ := strings.Cut(name, "/")
	_, section, _ := strings.Cut(string(b.committed), "\n## "+test+"\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for line := range strings.Lines(section) {
		cells := strings.Split(line, " | ")
		if len(cells) < 5 {
			continue
		}
		full := c
		full.threads, _ = strconv.Atoi(cells[1])
		full.schedules, _ = strconv.Atoi(strings.ReplaceAll(cells[len(cells)-2], ",", ""))
		if strings.HasPrefix(line, full.row(name)) && full.threads >= c.threads && full.schedules > c.schedules {
			return full
		}
	}
	b.complain("%s has more executions than the page says: run it without %s", name, mostVariable)
	return c
}

// row returns the part of a check's row before the number of schedules.
func (c *check) row(name string) string {
	_, scenario, _ := strings.Cut(name, "/")
	return fmt.Sprintf("| %s | %d | %s | ", cell(strings.ReplaceAll(scenario, "_", " ")), c.threads, cell(c.operations))
}
