package changeset

import (
	"context"

	"github.com/nats-io/nats.go/jetstream"
)

// Prune forgets changesets with an ordinal below before, from the oldest on, as far as
// they are sealed. The latest changeset stays. A tracker's Prune calls it when it has
// forgotten the same changesets. Prune writes down which ones, and then purges the messages before the start of the first
// one that it keeps. It panics if ctx is nil.
//
// Seal, Abort and Applied of a pruned changeset succeed and do nothing, so that a caller
// that missed their success can repeat them.
//
// Prune is blocking: it waits for the servers. It takes effect when its record is
// committed.
func (s *Store[E]) Prune(ctx context.Context, before uint64) error {
	err := s.write(ctx, "Prune", func(at *state) (*record, []byte, error) {
		latest := at.latest()
		if latest == nil {
			return nil, nil, nil
		}
		keep := at.sets[0].Ordinal
		for keep < before && keep < latest.Ordinal && at.at(keep).sealed {
			keep++
		}
		if keep <= at.first {
			return nil, nil, nil
		}
		return &record{Kind: Pruned, Next: keep}, nil, nil
	})
	if err != nil {
		return err
	}
	if err := s.purge(ctx); err != nil {
		return failed("Prune", err)
	}
	return nil
}

// purge removes the messages that nobody needs, according to a prune that is written in
// the stream, if that still has this Store's last message: the sequences of a stream that
// was restored from a backup are not those of the prune.
func (t *trail) purge(ctx context.Context) error {
	if err := t.lock(ctx); err != nil {
		return err
	}
	defer t.unlock()
	if t.state == nil || t.state.first <= 1 {
		return nil
	}
	start := t.state.sets[0].start
	return t.ask(ctx, func(ctx context.Context) error {
		there, err := t.last(ctx)
		if err != nil || there.at.CachedInfo().Config.DenyPurge || there.first > t.place.own {
			return err
		}
		if there.last < t.place.seq { // it was restored from a backup, or is that of a leader that is cut off
			return there.rewound(t.place.seq)
		}
		if err := t.mine(ctx, there); err != nil {
			return err
		}
		return there.at.Purge(ctx, jetstream.WithPurgeSequence(start))
	})
}
