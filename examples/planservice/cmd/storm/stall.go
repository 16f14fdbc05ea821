package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/latchfree/latchfree/examples/planservice/api"
)

const (
	// slowOpen is how long a database takes to open whose name begins with slow-, and
	// slowApply how long an apply to it takes: see -slow-open and -slow-apply of the service.
	slowOpen  = 300 * time.Millisecond
	slowApply = time.Second
	// The pause of a client that nothing holds up. It keeps the cores from being what
	// everybody waits for.
	stallPause = 2 * time.Millisecond
)

// replayStalls lets a strategy stall, a database open slowly and an apply take a second, all at
// once, and measures how long everybody else waits: for a record, a look-up, and the
// result of what was applied before to another database.
func replayStalls(ctx context.Context, l *storming) error {
	stalls := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-l.during.Done():
		}
	}))
	defer stalls.Close()
	if _, err := l.CreateStrategy(ctx, api.Strategy{Name: "stalls", URL: stalls.URL}); err != nil {
		return err
	}
	if _, err := l.CreatePlan(ctx, api.Plan{Name: "stalls", Actions: []string{"count"}, Strategies: []string{"stalls"}}); err != nil {
		return err
	}
	warm, err := l.StartChangeset(ctx, "storm")
	if err != nil {
		return err
	}
	if _, err := l.StartChangeset(ctx, "storm"); err != nil { // in which others record
		return err
	}
	again := func() error {
		_, err := l.Apply(ctx, warm.ID, "warm", api.ApplyChangeset{Database: "memory:warm"})
		return err
	}
	if err := again(); err != nil {
		return err
	}
	return together(3+max(l.clients, 4*runtime.NumCPU()), func(client int) error {
		for i := 0; l.during.Err() == nil; i++ {
			var err error
			switch client {
			case 0:
				_, err = l.Run(ctx, "stalls", api.RunPlan{})
			case 1:
				err = applySlowly(ctx, l, i)
			case 2:
				l.idle()
			default:
				err = l.watched(
					func() error { return recordOne(ctx, l, client, fmt.Sprintf("stall-%d-%d", client, i)) },
					func() error { _, err := l.Action(ctx, "count"); return err },
					again)
				time.Sleep(stallPause)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// applySlowly applies a changeset to a database that nobody has opened.
func applySlowly(ctx context.Context, l *storming, i int) error {
	c, err := l.StartChangeset(ctx, "storm")
	if err != nil {
		return err
	}
	if _, err := l.StartChangeset(ctx, "storm"); err != nil {
		return err
	}
	a, err := l.Apply(ctx, c.ID, c.ID, api.ApplyChangeset{Database: fmt.Sprint("memory:slow-", i)})
	if err == nil {
		l.told.wasApplied(a)
	}
	return err
}

// watched runs operations of somebody who has nothing to do with what stalls, and notes how long each took.
func (l *storming) watched(operations ...func() error) error {
	for _, operation := range operations {
		began := time.Now()
		if err := operation(); err != nil {
			return err
		}
		took := time.Since(began)
		l.load.mu.Lock()
		l.load.others = append(l.load.others, took)
		l.load.mu.Unlock()
	}
	return nil
}

// idle is somebody who asks for nothing: how late a timer is, is what the machine adds to all waits.
func (l *storming) idle() {
	began := time.Now()
	time.Sleep(stallPause)
	late := time.Since(began) - stallPause
	l.load.mu.Lock()
	defer l.load.mu.Unlock()
	l.load.late = max(l.load.late, late)
}

// quantile returns the time within which a part of all operations ended. It sorts them.
func quantile(took []time.Duration, part float64) time.Duration {
	if len(took) == 0 {
		return 0
	}
	slices.Sort(took)
	return took[int(part*float64(len(took)-1))]
}

// finding says in a sentence what the storm has found out about the stores that it compares.
func finding(results []result) string {
	var waits, wrong []string
	var late time.Duration
	for _, r := range results {
		if len(r.load.others) > 0 {
			waits = append(waits, fmt.Sprintf("up to %v with %s", quantile(r.load.others, 1).Round(time.Millisecond), r.store))
		}
		late = max(late, r.load.late)
		wrong = append(wrong, fmt.Sprintf("%d with %s", r.defects.sum(), r.store))
	}
	if len(waits) == 0 {
		return fmt.Sprintf("Operations that went wrong: %s.", strings.Join(wrong, ", "))
	}
	return fmt.Sprintf("While a database took %v to open, a strategy stalled and an apply took %v, everybody else waited %s, and a timer alone up to %v; operations that went wrong: %s.",
		slowOpen, slowApply, strings.Join(waits, ", "), late.Round(time.Millisecond), strings.Join(wrong, ", "))
}
