package service

import (
	"context"
	"crypto/rand"
	"iter"
	"slices"

	"github.com/latchfree/latchfree/examples/planservice/api"
)

// Bounds of the fields of a change, in bytes.
const (
	maxField = 256
	maxValue = 64 << 10
)

// StartChangeset starts a changeset for a plan, which becomes the current one.
func (s *Service) StartChangeset(ctx context.Context, plan string) (api.Changeset, error) {
	if plan == "" {
		return api.Changeset{}, invalid("a changeset needs a plan")
	}
	p, err := s.set.Plans.Get(plan)
	if err != nil {
		return api.Changeset{}, err
	}
	c, err := s.set.Changesets.Start(ctx, p.Name)
	if err != nil {
		return c, err
	}
	s.counters.started.Add(1)
	return c, s.audit.Write(api.AuditLine{Kind: api.KindStarted, Changeset: c.ID, Ordinal: c.Ordinal, Plan: p.Name})
}

// Changesets returns all changesets, the oldest first.
func (s *Service) Changesets() []api.Changeset {
	return slices.AppendSeq([]api.Changeset{}, s.set.Changesets.All())
}

// Record records a change in the current changeset.
func (s *Service) Record(ctx context.Context, c api.Change) (api.Receipt, error) {
	for _, field := range []string{c.ID, c.Plan, c.Run, c.Strategy, c.Action} {
		if len(field) > maxField {
			return api.Receipt{}, invalid("a field has more than %d bytes", maxField)
		}
	}
	if len(c.Value) > maxValue {
		return api.Receipt{}, invalid("the value has more than %d bytes", maxValue)
	}
	if c.ID == "" {
		c.ID = rand.Text()
	}
	r, err := s.set.Changesets.Record(ctx, c)
	if err != nil {
		s.counters.unrecorded.Add(1)
		return r, err
	}
	s.counters.recorded.Add(1)
	return r, s.audit.Write(api.AuditLine{Kind: api.KindRecorded, ChangeID: c.ID, Changeset: r.Changeset, Ordinal: r.Ordinal, Seq: r.Seq})
}

// Seal seals a changeset.
func (s *Service) Seal(ctx context.Context, id string) (api.Changeset, error) {
	c, err := s.set.Changesets.Seal(ctx, id)
	if err != nil {
		return c, err
	}
	return c, s.audit.Write(api.AuditLine{Kind: api.KindSealed, Changeset: id, Count: c.Changes})
}

// Audit yields the audit trail: the events until now, and then the changes.
func (s *Service) Audit() iter.Seq[api.AuditLine] {
	return func(yield func(api.AuditLine) bool) {
		for line := range s.audit.All() {
			if !yield(line) {
				return
			}
		}
		for r, c := range s.set.Changesets.Trail() {
			if !yield(api.AuditLine{Kind: api.KindChange, Changeset: r.Changeset, Ordinal: r.Ordinal, Seq: r.Seq, Change: &c}) {
				return
			}
		}
	}
}
