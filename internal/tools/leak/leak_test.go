package leak

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestMain(m *testing.M) { Main(m) }

// child names the environment variable of processes that TestMainReports
// starts.
const child = "LEAK_CHILD"

// TestChild leaves a goroutine behind if it is told to.
func TestChild(t *testing.T) {
	if os.Getenv(child) == "leaks" {
		go waitForEver()
	}
}

func waitForEver() { select {} }

func TestMainReports(t *testing.T) {
	for _, how := range []string{"leaks", "does not"} {
		cmd := exec.Command(os.Args[0], "-test.run=^TestChild$")
		cmd.Env = append(os.Environ(), child+"="+how)
		out, err := cmd.CombinedOutput()
		reported := err != nil && strings.Contains(string(out), "1 goroutines outlive the tests") &&
			strings.Contains(string(out), "leak.waitForEver")
		if reported != (how == "leaks") || (err != nil) != (how == "leaks") {
			t.Errorf("a test that %s: %v\n%s", how, err, out)
		}
	}
}

// A goroutine that is about to end is waited for, and one that ends during the
// wait is no leak.
func TestEndingIsNoLeak(t *testing.T) {
	before := goroutines()
	stop := make(chan bool)
	for range 100 {
		go func() { <-stop }()
	}
	if left := since(before, 0); len(left) != 100 {
		t.Errorf("%d goroutines are found, want 100", len(left))
	}
	close(stop)
	if left := since(before, patience); len(left) != 0 {
		t.Errorf("%d goroutines that ended are found", len(left))
	}
}

// Bubbles leave nothing behind.
func TestBubble(t *testing.T) {
	before := goroutines()
	synctest.Test(t, func(t *testing.T) {
		go time.Sleep(time.Hour)
		if left := since(before, 0); len(left) < 2 { // this one and the sleeper
			t.Errorf("%d goroutines are found in a bubble, want 2 or more", len(left))
		}
		time.Sleep(2 * time.Hour)
	})
	if left := since(before, patience); len(left) != 0 {
		t.Errorf("%d goroutines of a bubble that is over are found", len(left))
	}
}
