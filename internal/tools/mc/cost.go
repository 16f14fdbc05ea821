//go:build modelcheck

package mc

import (
	"fmt"
	"time"

	"github.com/latchfree/latchfree/internal/goid"
)

// Class is what a step costs outside the model.
type Class uint8

// The classes.
const (
	Free       Class = iota // nothing: it exists only in the model
	Load                    // an atomic load
	Store                   // an atomic store
	RMW                     // an atomic read-modify-write, successful or not
	Blocking                // an operation of a mutex, event or wait group
	TableRead               // a lookup in a table
	TableWrite              // a table operation that may lock a bucket
	Clock                   // a reading of the clock
	classes
)

// Cost counts operations by class.
type Cost struct {
	Loads, Stores, RMWs, Blocking, TableReads, TableWrites, Clock int
}

// String names the counts that are not zero.
func (c Cost) String() string {
	s := ""
	for _, x := range []struct {
		name string
		n    int
	}{
		{"loads", c.Loads}, {"stores", c.Stores}, {"rmws", c.RMWs}, {"blocking", c.Blocking},
		{"table reads", c.TableReads}, {"table writes", c.TableWrites}, {"clock", c.Clock},
	} {
		if x.n != 0 {
			s += fmt.Sprintf(", %s=%d", x.name, x.n)
		}
	}
	if s == "" {
		return "nothing"
	}
	return s[2:]
}

// meter counts while Measure runs, for the goroutine of that token: a timer or a finalizer of
// an earlier test must not count.
var (
	meter   *Cost
	metered uintptr
)

// counter returns what counts the operations of the calling goroutine, or nil.
//
//go:norace
func counter() *Cost {
	if meter == nil || metered != goid.Token() {
		return nil
	}
	return meter
}

// measured is the measurement that goes on, or nil.
var measured *measurement

// A measurement is of costs. To the goroutine that measures, each reading of the clock is a
// tick later than the one before: what an operation does may depend on the time since
// another, and must not depend on how fast the machine is.
type measurement struct {
	by  uintptr // the token of that goroutine
	now time.Time
}

const tick = 10 * time.Microsecond

// read reads the clock.
func (m *measurement) read() time.Time {
	m.now = m.now.Add(tick)
	return m.now
}

// Measuring reports whether costs are measured, so that limits must be those
// of a normal build.
func Measuring() bool { return measured != nil }

// measure says that costs are measured until stop is called.
func measure() (stop func()) {
	before := measured
	if before == nil {
		measured = &measurement{goid.Token(), time.Now()}
	}
	return func() { measured = before }
}

// Measure returns what f does to shared words, alone and outside explorations.
func Measure(f func()) Cost {
	defer measure()()
	var c Cost
	metered, meter = goid.Token(), &c
	defer func() { meter = nil }()
	f()
	return c
}

//go:norace
func (c *Cost) add(class Class) {
	switch class {
	case Load:
		c.Loads++
	case Store:
		c.Stores++
	case RMW:
		c.RMWs++
	case Blocking:
		c.Blocking++
	case TableRead:
		c.TableReads++
	case TableWrite:
		c.TableWrites++
	case Clock:
		c.Clock++
	}
}

// Count counts one operation of a class that only its outcome told.
//
//go:norace
func Count(class Class) {
	if c := counter(); c != nil {
		c.add(class)
	}
}
