package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

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
	expected := make([]map[string]bool, len(l.replicas)) // strategies that have failed often enough there
	err := l.each(func(replica int) error {
		expected[replica] = map[string]bool{}
		for round := 0; l.during.Err() == nil; round++ {
			name := fmt.Sprintf("down-%d-%d", replica, round)
			err := failThreeTimes(ctx, l, replica, name, down.URL)
			if err == nil {
				expected[replica][name] = true
			} else if !l.isLost(err) {
				return err
			} else {
				time.Sleep(20 * time.Millisecond)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	<-l.back
	if l.clustered() {
		time.Sleep(hearing)
	}
	// Breakers that have opened are half-open later on, so the trails say who has tripped.
	opened := make([]map[string]bool, len(l.replicas))
	for replica := range l.replicas {
		opened[replica] = map[string]bool{}
		failures, tripped := map[string]int{}, map[string]int{}
		for line, err := range l.at(replica).Audit(ctx) {
			switch {
			case err != nil:
				return err
			case line.Kind == api.KindTransition && line.To == "Open":
				opened[replica][line.Strategy] = true
			case line.Kind == api.KindResult && expected[replica][line.Strategy] && line.Outcome == api.OutcomeFailure:
				failures[line.Strategy]++
				if line.Verdict == "Tripped" {
					tripped[line.Strategy]++
				}
			}
		}
		for name := range expected[replica] {
			if failures[name] != threshold {
				return fmt.Errorf("the trail has %d failures of %s", failures[name], name)
			}
			if tripped[name] != 1 {
				l.defect("failures lost", 1)
			}
		}
	}
	for replica, names := range expected {
		for name := range names {
			for other := range l.replicas {
				if other != replica {
					l.load.trips++
					if opened[other][name] {
						l.load.heard++
					}
				}
			}
		}
	}
	return nil
}

// hearing is how long hints may take before they are looked for.
const hearing = 500 * time.Millisecond

// failThreeTimes makes a strategy that is down known, and calls it at one replica.
func failThreeTimes(ctx context.Context, l *storming, replica int, name, url string) error {
	at := l.at(replica)
	if _, err := at.CreateStrategy(ctx, api.Strategy{Name: name, URL: url}); err != nil {
		return err
	}
	if err := shown(func() error { _, err := at.Strategy(ctx, name); return err }); err != nil {
		return err
	}
	if _, err := at.CreatePlan(ctx, api.Plan{Name: name, Actions: []string{"count"}, Strategies: []string{name}}); err != nil {
		return err
	}
	if err := shown(func() error { _, err := at.Plan(ctx, name); return err }); err != nil {
		return err
	}
	return together(threshold, func(int) error {
		return l.timed(func() error {
			run, err := at.Run(ctx, name, api.RunPlan{})
			if err == nil && run.Results[0].Outcome != api.OutcomeFailure {
				err = wrong(fmt.Sprintf("a call of %s, which is down: %+v", name, run.Results[0]))
			}
			return err
		})
	})
}

// shown waits until a replica shows what was created, there or elsewhere: it may be behind the
// others.
func shown(read func() error) error {
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		if err := read(); !api.IsCode(err, api.CodeNotFound) || time.Since(began) > patience {
			return err
		}
	}
}
