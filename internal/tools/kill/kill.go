// Package kill runs a test binary once more, as a child that is killed: for tests
// of what survives that.
//
//	func TestMain(m *testing.M) {
//		if path := os.Getenv(childFile); path != "" {
//			child(path) // prints lines until it is killed
//		}
//		os.Exit(m.Run())
//	}
package kill

import (
	"bufio"
	"os"
	"os/exec"
	"testing"
	"time"
)

// After runs the child, with env added to the environment, until it has printed n
// lines. Then it calls before, which may be nil, kills the child, and returns all
// whole lines that it has printed: n or more. The test fails if the child ends by
// itself, or prints too little before the test's time is up: it does not outlive the test.
func After(t *testing.T, n int, before func(), env ...string) (lines []string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if end, ok := t.Deadline(); ok {
		defer time.AfterFunc(time.Until(end)-time.Second, func() { cmd.Process.Kill() }).Stop()
	}
	for r := bufio.NewReader(out); ; {
		if len(lines) == n {
			if before != nil {
				before()
			}
			cmd.Process.Kill() // an error means that it has ended: see below
		}
		line, err := r.ReadString('\n')
		if err != nil {
			break // the end of its output, perhaps within a line
		}
		lines = append(lines, line)
	}
	cmd.Wait()
	if cmd.ProcessState.Exited() {
		t.Fatalf("the child has ended by itself: %v", cmd.ProcessState)
	}
	if len(lines) < n {
		t.Fatalf("the child has printed %d lines of %d in the test's time", len(lines), n)
	}
	return lines
}
