package gobreaker

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

var errBad = errors.New("bad")

func TestLifeCycle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cb := NewCircuitBreaker[int](Settings{MaxRequests: 2})
		bad := func() (int, error) { return 0, errBad }
		good := func() (int, error) { return 7, nil }
		for i := range 6 {
			if cb.State() != StateClosed || cb.Counts().ConsecutiveFailures != uint32(i) {
				t.Fatalf("before failure %d: %v, %+v", i, cb.State(), cb.Counts())
			}
			if _, err := cb.Execute(bad); err != errBad {
				t.Fatal(err)
			}
		}
		if _, err := cb.Execute(good); err != ErrOpenState || cb.State() != StateOpen {
			t.Fatal(err, cb.State())
		}
		time.Sleep(time.Minute + time.Second)
		for range 2 {
			if cb.State() != StateHalfOpen {
				t.Fatal(cb.State())
			}
			if v, err := cb.Execute(good); v != 7 || err != nil {
				t.Fatal(v, err)
			}
		}
		if cb.State() != StateClosed {
			t.Fatal(cb.State())
		}
	})
}

func TestTwoStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewTwoStepCircuitBreaker[int](Settings{ReadyToTrip: func(c Counts) bool { return c.TotalFailures >= 1 },
			IsExcluded: func(err error) bool { return err == nil }})
		done, _ := b.Allow()
		done(errBad)
		time.Sleep(2 * time.Minute)
		done, err := b.Allow()
		if _, err2 := b.Allow(); err != nil || err2 != ErrTooManyRequests {
			t.Fatal(err, err2)
		}
		done(nil)
		if b.State() != StateHalfOpen {
			t.Fatal(b.State())
		}
	})
}

func TestPanicFails(t *testing.T) {
	cb := NewCircuitBreaker[int](Settings{})
	func() {
		defer func() {
			if recover() != "x" {
				t.Error("the panic is lost")
			}
		}()
		cb.Execute(func() (int, error) { panic("x") })
	}()
	if c := cb.Counts(); c.TotalFailures != 1 {
		t.Errorf("%+v", c)
	}
}

func TestClassifyPanicFails(t *testing.T) {
	b := NewTwoStepCircuitBreaker[int](Settings{IsSuccessful: func(error) bool { panic("x") }})
	done, _ := b.Allow()
	func() {
		defer func() { _ = recover() }()
		done(nil)
	}()
	if c := b.Counts(); c.TotalFailures != 1 {
		t.Errorf("%+v", c)
	}
}
