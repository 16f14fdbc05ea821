// Package demo is a client that fills the service and goes on changing it, so that the status
// page has something to show.
package demo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"time"

	"github.com/latchfree/latchfree/examples/planservice/api"
)

// Config says what the demo works with.
type Config struct {
	URL  string        // of the service
	Tick time.Duration // how long a step takes; 1 s if zero
	Log  *slog.Logger
}

// The names are as the service normalises them: naive does not find others.
var (
	actions = []api.Action{
		{Name: "back-up", Description: "of all databases"}, {Name: "rotate-keys"}, {Name: "count-stock"}, {Name: "order-supplies"},
		{Name: "collect-invoices"}, {Name: "send-reminders"}, {Name: "rebuild-index"}, {Name: "monthly-report"},
	}
	plans = []api.Plan{
		{Name: "housekeeping", Actions: []string{"back-up", "rotate-keys"}, Strategies: []string{api.Direct}},
		{Name: "stock", Actions: []string{"count-stock", "order-supplies"}, Strategies: []string{"warehouse"}},
		{Name: "reminders", Actions: []string{"collect-invoices", "send-reminders"}, Strategies: []string{api.Direct, "mail"}},
		{Name: "search", Actions: []string{"rebuild-index"}, Strategies: []string{"search"}},
		{Name: "month-end", Actions: []string{"monthly-report", "back-up"}, Strategies: []string{api.Direct, "reports"}},
	}
	databases = []string{"", "memory:archive", "memory:reports"}
)

// threshold is how often a strategy is called that is to be open at once.
const threshold = 3

// demo is what a running demo knows.
type demo struct {
	*api.Client
	Config
	remote  *strategies
	plan    int // that has got the last changeset
	applies int
}

// Run fills the service, and then changes it a little in each step, until ctx ends.
func Run(ctx context.Context, c Config) error {
	if c.Tick == 0 {
		c.Tick = time.Second
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	remote, err := serveStrategies(c.Tick)
	if err != nil {
		return err
	}
	defer remote.close()
	d := &demo{Client: api.NewClient(c.URL, &http.Client{Transport: transport}), Config: c, remote: remote}
	err = d.fill(ctx)
	for n := 0; err == nil && ctx.Err() == nil; n++ {
		if failed := d.step(ctx, n); failed != nil && ctx.Err() == nil {
			d.Log.Warn("demo: a step failed", "error", failed) // somebody else may use the same names
			d.wait(ctx, d.Tick)
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// fill creates what there is not yet, opens two breakers, and leaves some changesets applied
// and some not.
func (d *demo) fill(ctx context.Context) error {
	for _, a := range actions {
		if _, err := d.CreateAction(ctx, a); err != nil && !api.IsCode(err, api.CodeExists) {
			return err
		}
	}
	for _, name := range remoteStrategies {
		if err := d.ensureStrategy(ctx, api.Strategy{Name: name, URL: d.remote.url(name)}); err != nil {
			return err
		}
	}
	for _, p := range plans {
		if _, err := d.CreatePlan(ctx, p); err != nil && !api.IsCode(err, api.CodeExists) {
			return err
		}
	}
	for range 2 * len(plans) {
		if err := d.startNext(ctx); err != nil {
			return err
		}
	}
	for _, plan := range []string{"search", "reminders"} {
		for range threshold {
			if _, err := d.Run(ctx, plan, api.RunPlan{}); err != nil {
				return err
			}
		}
	}
	for range len(plans) {
		if err := d.applyOldest(ctx); err != nil {
			return err
		}
	}
	return nil
}

// ensureStrategy makes a strategy known, also if an earlier demo has given it another URL.
func (d *demo) ensureStrategy(ctx context.Context, s api.Strategy) error {
	_, err := d.CreateStrategy(ctx, s)
	if !api.IsCode(err, api.CodeExists) {
		return err
	}
	was, err := d.Strategy(ctx, s.Name)
	if err != nil {
		return err
	}
	_, err = d.PutStrategy(ctx, s.Name, was.Version, s)
	return err
}

// step is what happens in one tick.
func (d *demo) step(ctx context.Context, n int) error {
	d.remote.warehouseIsDown.Store(n%60 >= 30 && n%60 < 40)
	var errs []error
	every := func(ticks, at int, f func() error) {
		if n%ticks == at {
			errs = append(errs, f())
		}
	}
	run := func(plan string) func() error {
		return func() error { _, err := d.Run(ctx, plan, api.RunPlan{}); return err }
	}
	every(2, 0, run("stock"))
	every(3, 0, run("reminders")) // mail is down, so that its breaker is open nearly always
	every(5, 0, func() error { return d.startNext(ctx) })
	every(5, 2, func() error { return d.applyOldest(ctx) })
	every(7, 3, func() error { return d.edit(ctx, n/7) })
	every(20, 19, run("search")) // down too, and half-open until it is called
	changes := int(6 + 5*math.Sin(float64(n)/7))
	for i := range changes {
		plan := plans[(n+i)%len(plans)]
		_, err := d.Record(ctx, api.Change{Plan: plan.Name, Action: plan.Actions[i%len(plan.Actions)], Value: fmt.Sprint(n, "/", i)})
		errs = append(errs, err)
		d.wait(ctx, d.Tick/time.Duration(changes))
	}
	return errors.Join(errs...)
}

// startNext starts a changeset for the next plan, and runs that.
func (d *demo) startNext(ctx context.Context) error {
	d.plan = (d.plan + 1) % len(plans)
	_, err := d.Run(ctx, plans[d.plan].Name, api.RunPlan{Start: true})
	return err
}

// applyOldest applies the oldest changeset that is sealed to one of the databases.
func (d *demo) applyOldest(ctx context.Context) error {
	all, err := d.Changesets(ctx)
	if err != nil {
		return err
	}
	for _, c := range all {
		if c.Sealed && !c.Applied {
			d.applies++
			_, err := d.Apply(ctx, c.ID, c.ID, api.ApplyChangeset{Database: databases[d.applies%len(databases)]})
			return err
		}
	}
	return nil
}

// edit gives an action and a plan their next version.
func (d *demo) edit(ctx context.Context, n int) error {
	a, err := d.Action(ctx, actions[n%len(actions)].Name)
	if err != nil {
		return err
	}
	a.Value.Description = fmt.Sprint("as reviewed in round ", n)
	_, err = d.PutAction(ctx, a.Value.Name, a.Version, a.Value)
	if err != nil {
		return err
	}
	// Not every plan as often as the others.
	p, err := d.Plan(ctx, plans[n*n%len(plans)].Name)
	if err != nil {
		return err
	}
	p.Value.Description = a.Value.Description
	_, err = d.PutPlan(ctx, p.Value.Name, p.Version, p.Value)
	return err
}

func (d *demo) wait(ctx context.Context, duration time.Duration) {
	select {
	case <-time.After(duration):
	case <-ctx.Done():
	}
}
