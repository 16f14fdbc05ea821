package peers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/latchfree/latchfree/atomicbreaker"
)

// longestOpen is the longest open time of atomicbreaker.
const longestOpen = 365 * 24 * time.Hour

// sinceClosed is the window in place of counts that gobreaker keeps for as long
// as it stays closed.
const sinceClosed = 365 * 24 * time.Hour

// mostProbes is what Config.Probes and Config.CloseAfter can be at most.
const mostProbes = 31

// FromGobreaker returns the settings with which a breaker of ours does what
// gobreaker's does with st, or an error that names all that has no counterpart.
// docs/coming-from-breakers.md has a row for each step, and says what still
// differs. It calls IsSuccessful and IsExcluded once each.
func FromGobreaker(st gobreaker.Settings) (atomicbreaker.Config, error) {
	open := st.Timeout
	if open <= 0 {
		open = time.Minute
	}
	probes := max(1, st.MaxRequests)
	c := atomicbreaker.Config{
		Name:          st.Name,
		Policy:        tripOfGobreaker(st),
		OpenTimeout:   open,
		Probes:        int(probes),
		CloseAfter:    int(probes),
		Classify:      classifyOfGobreaker(st),
		OnStateChange: listenerOfGobreaker(st),
	}
	var errs []error
	if open > longestOpen {
		errs = append(errs, fmt.Errorf("gobreaker.Settings.Timeout %v: must be at most %v", open, longestOpen))
	}
	if probes > mostProbes {
		errs = append(errs, fmt.Errorf("gobreaker.Settings.MaxRequests %d: Probes and CloseAfter are at most %d", probes, mostProbes))
	}
	if st.IsSuccessful != nil && !st.IsSuccessful(nil) {
		errs = append(errs, errors.New("gobreaker.Settings.IsSuccessful: a nil error is a Success; report Permit.Failure"))
	}
	if st.IsExcluded != nil && st.IsExcluded(nil) {
		errs = append(errs, errors.New("gobreaker.Settings.IsExcluded: a nil error is a Success; report Permit.Cancel"))
	}
	if len(errs) != 0 {
		return atomicbreaker.Config{}, errors.Join(errs...)
	}
	return c, nil
}

// tripOfGobreaker is ReadyToTrip, Interval and BucketPeriod.
func tripOfGobreaker(st gobreaker.Settings) atomicbreaker.Policy {
	ready := st.ReadyToTrip
	if ready == nil && st.Interval <= 0 {
		return atomicbreaker.Consecutive(6)
	}
	if ready == nil {
		ready = func(c gobreaker.Counts) bool { return c.ConsecutiveFailures > 5 }
	}
	window := st.Interval
	switch {
	case window <= 0:
		window = sinceClosed
	case st.BucketPeriod > 0: // up to a multiple
		window = (window + st.BucketPeriod - 1) / st.BucketPeriod * st.BucketPeriod
	}
	return atomicbreaker.TripFunc(window, 0, func(c atomicbreaker.Counts) bool {
		inARow := c.Consecutive
		if st.Interval > 0 {
			inARow = min(inARow, c.Failures) // of those in the window
		}
		return ready(gobreaker.Counts{
			Requests:            uint32(c.Calls),
			TotalSuccesses:      uint32(c.Calls - c.Failures),
			TotalFailures:       uint32(c.Failures),
			ConsecutiveFailures: uint32(inARow),
		})
	})
}

// classifyOfGobreaker is IsExcluded and IsSuccessful. Without them every error
// is a failure, context.Canceled too.
func classifyOfGobreaker(st gobreaker.Settings) func(context.Context, error) atomicbreaker.Outcome {
	return func(_ context.Context, err error) atomicbreaker.Outcome {
		switch {
		case st.IsExcluded != nil && st.IsExcluded(err):
			return atomicbreaker.Ignored
		case st.IsSuccessful != nil && st.IsSuccessful(err):
			return atomicbreaker.Success
		}
		return atomicbreaker.Failure
	}
}

// listenerOfGobreaker is OnStateChange, which is not told of events that leave
// the state as it is.
func listenerOfGobreaker(st gobreaker.Settings) func(atomicbreaker.Event) {
	if st.OnStateChange == nil {
		return nil
	}
	return func(e atomicbreaker.Event) {
		if from, to := gobreakerState(e.From), gobreakerState(e.To); from != to {
			st.OnStateChange(e.Name, from, to)
		}
	}
}

func gobreakerState(s atomicbreaker.State) gobreaker.State {
	switch s {
	case atomicbreaker.Open, atomicbreaker.ForcedOpen:
		return gobreaker.StateOpen
	case atomicbreaker.HalfOpen:
		return gobreaker.StateHalfOpen
	}
	return gobreaker.StateClosed // and what lets every call through
}
