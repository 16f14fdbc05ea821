package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/latchfree/latchfree/examples/planservice/api"
)

// threshold is how many failures in a row open a breaker of the service.
const threshold = 3

// replayBreakers lets a strategy that always fails be called as often as opens its breaker,
// by as many clients at once, and asks whether the breaker is open; for many strategies.
func replayBreakers(ctx context.Context, l *storming) error {
	down := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer down.Close()
	expected := map[string]bool{} // strategies that have failed often enough
	for round := 0; l.during.Err() == nil; round++ {
		name := fmt.Sprint("down-", round)
		if _, err := l.CreateStrategy(ctx, api.Strategy{Name: name, URL: down.URL}); err != nil {
			return err
		}
		if _, err := l.CreatePlan(ctx, api.Plan{Name: name, Actions: []string{"count"}, Strategies: []string{name}}); err != nil {
			return err
		}
		err := together(threshold, func(int) error {
			return l.load.timed(func() error {
				run, err := l.Run(ctx, name, api.RunPlan{})
				if err == nil && run.Results[0].Outcome != api.OutcomeFailure {
					err = fmt.Errorf("a call of %s, which is down: %+v", name, run.Results[0])
				}
				return err
			})
		})
		if err != nil {
			return err
		}
		expected[name] = true
	}
	// Breakers that have opened are half-open later on, so the trail says who has tripped.
	failures, tripped := map[string]int{}, map[string]int{}
	for line, err := range l.Audit(ctx) {
		if err != nil {
			return err
		}
		if line.Kind == api.KindResult && expected[line.Strategy] && line.Outcome == api.OutcomeFailure {
			failures[line.Strategy]++
			if line.Verdict == "Tripped" {
				tripped[line.Strategy]++
			}
		}
	}
	for name := range expected {
		if failures[name] != threshold {
			return fmt.Errorf("the trail has %d failures of %s", failures[name], name)
		}
		if tripped[name] != 1 {
			l.defects["failures lost"]++
		}
	}
	return nil
}
