package service

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/latchfree/latchfree/examples/planservice/api"
)

// counters are totals since the process began.
type counters struct {
	requests, runs, successes, failures, rejected, cancelled atomic.Uint64
	started, applied, recorded, unrecorded, written          atomic.Uint64
}

// Sample is the throughput of one second.
type Sample struct{ Requests, Recorded, Calls float64 }

const (
	samples         = 60
	shownChangesets = 12
)

// CountRequest counts an HTTP request.
func (s *Service) CountRequest() { s.counters.requests.Add(1) }

// Counts returns the totals, each of its own moment.
func (s *Service) Counts() api.Counts {
	c := &s.counters
	counts := api.Counts{
		Requests: c.requests.Load(), Runs: c.runs.Load(), Successes: c.successes.Load(), Failures: c.failures.Load(),
		Rejected: c.rejected.Load(), Cancelled: c.cancelled.Load(), Started: c.started.Load(), Applied: c.applied.Load(), Recorded: c.recorded.Load(),
		Unrecorded: c.unrecorded.Load(), Written: c.written.Load(),
		Busy: s.pool.Busy(), Workers: s.pool.Workers(), Queued: s.pool.Queued(),
	}
	for range s.set.Actions.All() {
		counts.Actions++
	}
	for range s.set.Plans.All() {
		counts.Plans++
	}
	return counts
}

// Status returns what the status page shows.
func (s *Service) Status() api.Status {
	changesets := s.Changesets()
	changesets = slices.Clone(changesets[max(0, len(changesets)-shownChangesets):])
	slices.Reverse(changesets)
	status := api.Status{At: time.Now().UTC(), Since: s.since.UTC(), Store: s.set.Name, Ready: s.Ready(), Stopping: s.stopping.Load(),
		Replica: s.set.Replica, Counts: s.Counts(),
		Plans: s.Plans(), Changesets: changesets, Breakers: s.Breakers(), Engines: s.Engines()}
	if s.set.Mirrors != nil {
		status.Mirrors = s.set.Mirrors()
	}
	if s.set.EngineCache != nil {
		counts := s.set.EngineCache()
		status.EngineCache = &counts
	}
	return status
}

// Sample measures throughput each second, until stop is closed.
func (s *Service) Sample(stop <-chan struct{}) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	last, at := s.Counts(), time.Now()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
		}
		now, t := s.Counts(), time.Now()
		seconds := t.Sub(at).Seconds()
		rate := func(from, to uint64) float64 { return float64(to-from) / seconds }
		sample := Sample{rate(last.Requests, now.Requests), rate(last.Recorded, now.Recorded), rate(calls(last), calls(now))}
		s.history.Update(func(h []Sample) []Sample {
			return append(slices.Clone(h[max(0, len(h)-samples+1):]), sample)
		})
		last, at = now, t
	}
}

func calls(c api.Counts) uint64 { return c.Successes + c.Failures + c.Rejected + c.Cancelled }

// History returns the throughput of the last minute, the oldest second first.
func (s *Service) History() []Sample { return s.history.Load() }
