package kill_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/latchfree/latchfree/internal/tools/kill"
)

// child is the variable of the environment that makes the test binary the child.
const child = "KILL_TEST_CHILD"

func TestMain(m *testing.M) {
	if word := os.Getenv(child); word != "" {
		for i := 0; ; i++ {
			fmt.Println(word, i)
		}
	}
	os.Exit(m.Run())
}

func TestAfter(t *testing.T) {
	for _, n := range []int{0, 1, 100} {
		alive := 0
		lines := kill.After(t, n, func() { alive++ }, child+"=word")
		if len(lines) < n || alive != 1 {
			t.Errorf("%d lines of %d, and told %d times", len(lines), n, alive)
		}
		for i, line := range lines {
			if line != fmt.Sprintf("word %d\n", i) {
				t.Fatalf("line %d is %q", i, line)
			}
		}
	}
}
