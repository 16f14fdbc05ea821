package atomics_test

import (
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/latchfree/latchfree/internal/atomics"
)

// What a timer would have used is collected when it is stopped, though the
// runtime keeps the timer beside others that go on.
func TestStoppedTimersKeepNothing(t *testing.T) {
	for range 100 {
		defer atomics.After(time.Hour, func() {})()
	}
	used := func() weak.Pointer[[1 << 10]byte] {
		data := new([1 << 10]byte)
		atomics.After(time.Hour, func() { data[0]++ })()
		return weak.Make(data)
	}()
	for began := time.Now(); used.Value() != nil; runtime.GC() {
		if time.Since(began) > time.Minute {
			t.Fatal("not collected")
		}
	}
}

func TestTimers(t *testing.T) {
	fired := make(chan struct{})
	stop := atomics.After(time.Microsecond, func() { close(fired) })
	<-fired
	stop()
	stop()
}
