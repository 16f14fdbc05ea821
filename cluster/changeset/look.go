package changeset

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/latchfree/latchfree/cluster/internal/push"
)

// look reads the messages behind place, after the server has said that there are some. It
// returns nil when the state has more, or when there are none after all.
func (t *trail) look(ctx context.Context) error {
	var behind time.Time
	var why error
	for {
		more, err := t.lookOnce(ctx)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, ErrFenced):
			t.fenced = err
			return err
		case errors.Is(err, ErrStream) || errors.Is(err, ErrForeign) || errors.Is(err, ErrCorrupt) || closed(err):
			return err
		case more:
			return nil
		case !errors.Is(err, ErrRewound):
			behind = time.Time{}
		case behind.IsZero():
			behind = time.Now()
		case time.Since(behind) > rewoundAfter:
			return err
		}
		if why == nil || !errors.Is(err, context.DeadlineExceeded) {
			why = err
		}
		if push.Pause(ctx, retryPause) != nil {
			return t.unanswered(ctx, why)
		}
	}
}

// lookOnce reads the messages behind place. It reports whether there were some.
func (t *trail) lookOnce(ctx context.Context) (more bool, err error) {
	bounded, cancel := context.WithTimeout(ctx, t.ackWait)
	defer cancel()
	there, err := t.last(bounded)
	switch {
	case err != nil:
		return false, err
	case there.last < t.place.seq:
		return false, there.rewound(t.place.seq)
	case there.last == t.place.seq:
		if err := t.mine(bounded, there); err != nil {
			return false, err
		}
		return false, push.Pause(bounded, retryPause/10)
	case there.first > t.place.seq+1:
		return false, fmt.Errorf("%w: what it wrote behind message %d is pruned", ErrFenced, t.place.seq)
	}
	for t.place.seq < there.last {
		if there.removed[t.place.seq+1] {
			t.place.seq++
			more = true
			continue
		}
		m, err := t.get(bounded, there.at, t.place.seq+1)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return more, errors.New("changeset: a replica is behind")
		}
		if err != nil {
			return more, err
		}
		if m.subject != t.place.token {
			return more, fencedBy(m)
		}
		if err := t.advance(m); err != nil {
			return more, err
		}
		more = true
	}
	return more, nil
}

// mine returns an error unless this Store's last message is in the stream. After a
// refusal that has other reasons then: the server has refused what may go there, or had old
// contents.
func (t *trail) mine(ctx context.Context, there ends) error {
	if there.removed[t.place.own] {
		return fmt.Errorf("%w: message %d, the last one of this claim, was removed", ErrCorrupt, t.place.own)
	}
	m, err := t.get(ctx, there.at, t.place.own)
	switch {
	case errors.Is(err, ErrForeign) || err == nil && m.subject != t.place.token:
		return fmt.Errorf("%w: message %d is not what it was", ErrFenced, t.place.own)
	case err != nil:
		return err
	}
	return nil
}

// fencedBy returns an ErrFenced that names who has claimed the trail.
func fencedBy(m *message) error {
	if m.Holder == "" {
		return fmt.Errorf("%w (epoch %d)", ErrFenced, m.seq)
	}
	return fmt.Errorf("%w: %q (epoch %d)", ErrFenced, m.Holder, m.seq)
}

// held returns an ErrFenced if a later writer has claimed the trail, as far as a server
// knows that is asked once.
func (t *trail) held(ctx context.Context) error {
	there, err := t.last(ctx)
	if err != nil {
		return err
	}
	if there.first > t.place.own {
		return fmt.Errorf("%w: message %d, the last one of this claim, is pruned", ErrFenced, t.place.own)
	}
	for seq := t.place.own + 1; seq <= there.last; seq++ {
		if there.removed[seq] {
			continue
		}
		if m, err := t.get(ctx, there.at, seq); err != nil {
			return err
		} else if m.subject != t.place.token {
			return fencedBy(m)
		}
	}
	return nil
}
