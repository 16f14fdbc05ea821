// Package leak fails a package's tests if goroutines outlive them.
//
//	func TestMain(m *testing.M) { leak.Main(m) }
package leak

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"
)

// Main runs a package's tests. If they pass and have left goroutines behind,
// it prints where those are, and fails.
func Main(m *testing.M) {
	before := goroutines()
	code := m.Run()
	if code == 0 && !fuzzing() {
		if left := since(before, patience); len(left) > 0 {
			fmt.Fprintf(os.Stderr, "leak: %d goroutines outlive the tests\n", len(left))
			for _, stack := range left {
				fmt.Fprintf(os.Stderr, "\n%s\n", stack)
			}
			code = 1
		}
	}
	os.Exit(code)
}

// patience is how long goroutines may take to end that have nothing left to
// wait for: long for a machine that is busy, and spent by failing tests only.
const patience = 2 * time.Second

// fuzzing reports whether inputs are searched, by goroutines of package
// testing.
func fuzzing() bool {
	f := flag.Lookup("test.fuzz")
	return f != nil && f.Value.String() != ""
}

// since returns the stacks of goroutines that are not in before and do not end
// within the time given.
func since(before map[int][]byte, wait time.Duration) (left [][]byte) {
	for start := time.Now(); ; runtime.Gosched() {
		left = left[:0]
		for id, stack := range goroutines() {
			if _, old := before[id]; !old {
				left = append(left, stack)
			}
		}
		if len(left) == 0 || time.Since(start) >= wait {
			return left
		}
	}
}

// goroutines returns the stacks of all goroutines by their ids, which are
// never used again.
func goroutines() map[int][]byte {
	buf := make([]byte, 1<<16)
	n := runtime.Stack(buf, true)
	for n == len(buf) {
		buf = make([]byte, 2*len(buf))
		n = runtime.Stack(buf, true)
	}
	all := map[int][]byte{}
	for stack := range bytes.SplitSeq(buf[:n], []byte("\n\n")) {
		// goroutine 1 [running]:
		number, _, _ := bytes.Cut(bytes.TrimPrefix(stack, []byte("goroutine ")), []byte(" "))
		id, err := strconv.Atoi(string(number))
		if err != nil {
			panic("leak: a goroutine without a number: " + string(stack))
		}
		if bytes.Contains(stack, []byte("\nruntime.handleEvent()")) {
			continue // in JavaScript the runtime waits for events with one
		}
		all[id] = bytes.TrimSpace(stack)
	}
	return all
}
