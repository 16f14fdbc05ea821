package service

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"

	"github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/examples/planservice/api"
)

// Run lets the strategies of a plan carry it out in parallel, and waits for them.
func (s *Service) Run(ctx context.Context, plan string, r api.RunPlan) (api.Run, error) {
	p, err := s.set.Plans.Get(plan)
	if err != nil {
		return api.Run{}, err
	}
	if r.Start {
		if _, err := s.StartChangeset(ctx, p.Name); err != nil {
			return api.Run{}, err
		}
	}
	run := api.Run{ID: rand.Text(), Plan: p.Name, Results: make([]api.RunResult, len(p.Value.Strategies))}
	var ended sync.WaitGroup
	tasks := make([]func(), len(p.Value.Strategies))
	for i, strategy := range p.Value.Strategies {
		tasks[i] = func() {
			defer ended.Done()
			call := api.StrategyCall{Run: run.ID, Plan: p.Name, Strategy: strategy, Actions: p.Value.Actions}
			run.Results[i] = s.runStrategy(ctx, call)
		}
	}
	ended.Add(len(tasks))
	if err := s.pool.Go(tasks...); err != nil {
		return api.Run{}, err
	}
	s.counters.runs.Add(1)
	ended.Wait()
	return run, nil
}

// runStrategy calls a strategy if its breaker lets it, and records its changes.
func (s *Service) runStrategy(ctx context.Context, call api.StrategyCall) api.RunResult {
	result := api.RunResult{Strategy: call.Strategy}
	done, err := s.set.Breakers.Allow(call.Strategy)
	if err != nil {
		s.counters.rejected.Add(1)
		result.Outcome, result.Error = api.OutcomeRejected, err.Error()
		s.noteResult(call, result)
		return result
	}
	changes, err := s.call(ctx, call)
	if err != nil && errors.Is(ctx.Err(), context.Canceled) {
		err = context.Canceled // the caller has left, which says nothing about the strategy
	}
	result.Verdict = done(err)
	switch {
	case err == nil:
		s.counters.successes.Add(1)
		result.Outcome = api.OutcomeSuccess
	case errors.Is(err, context.Canceled):
		s.counters.cancelled.Add(1)
		result.Outcome, result.Error = api.OutcomeCancelled, err.Error()
	default:
		s.counters.failures.Add(1)
		result.Outcome, result.Error = api.OutcomeFailure, err.Error()
	}
	s.noteResult(call, result)
	if err != nil {
		return result
	}
	// The strategy has made its changes: they are recorded, even if the caller has left.
	ctx = context.WithoutCancel(ctx)
	for _, c := range changes {
		receipt, err := s.Record(ctx, api.Change{Plan: call.Plan, Run: call.Run, Strategy: call.Strategy, Action: c.Action, Value: c.Value})
		if err != nil {
			result.Error = err.Error()
			continue
		}
		result.Receipts = append(result.Receipts, receipt)
	}
	return result
}

func (s *Service) noteResult(call api.StrategyCall, r api.RunResult) {
	s.note(api.AuditLine{Kind: api.KindResult, Strategy: call.Strategy, Plan: call.Plan, Run: call.Run,
		Outcome: r.Outcome, Verdict: r.Verdict})
}

// onTransition is called by the breakers of latchfree, for one strategy in order.
func (s *Service) onTransition(strategy string, e atomicbreaker.Event) {
	s.log.Info("breaker", "strategy", strategy, "event", e)
	s.note(api.AuditLine{Kind: api.KindTransition, Strategy: strategy, From: e.From.String(), To: e.To.String(),
		Generation: e.Generation, Failures: e.Failures, Reason: e.Reason.String()})
}

// Breakers returns the breakers of all strategies by name.
func (s *Service) Breakers() []api.Breaker {
	var all []api.Breaker
	for _, st := range s.Strategies() {
		all = append(all, s.set.Breakers.Get(st.Value.Name))
	}
	return all
}

// ResetBreaker closes the breaker of a strategy.
func (s *Service) ResetBreaker(strategy string) error {
	e, err := s.set.Strategies.Get(strategy)
	if err != nil {
		return err
	}
	s.set.Breakers.Reset(e.Name)
	return s.audit.Write(api.AuditLine{Kind: api.KindReset, Strategy: e.Name})
}

// ResetBreakers closes all breakers.
func (s *Service) ResetBreakers() error {
	s.set.Breakers.ResetAll()
	return s.audit.Write(api.AuditLine{Kind: api.KindReset})
}
