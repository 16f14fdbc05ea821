package changeset

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/latchfree/latchfree/cluster/internal/push"
)

// Claim takes the trail over for one tracker. It returns ErrClaimed if this Store was
// claimed already, unless Release has undone that. Another Store, as that of another process, loses the
// trail: its later calls that write fail with ErrFenced, also those that are under way. A
// process that was killed needs no Release. Claim reads one message.
//
// Claim is blocking: it waits for the stream's leader until ctx ends. It takes effect when its message is committed. If it fails, others may
// have lost the trail nevertheless. It panics if ctx is nil.
func (s *Store[E]) Claim(ctx context.Context) error {
	needContext(ctx, "Store.Claim")
	if s.claimed.Load() {
		return ErrClaimed
	}
	if err := s.lock(ctx); err != nil {
		return failed("Claim", err)
	}
	defer s.unlock()
	if s.claimed.Load() { // by another call meanwhile
		return ErrClaimed
	}
	if err := s.claim(ctx); err != nil {
		return failed("Claim", err)
	}
	return nil
}

// patience is how many claims in a row may come too late before a wish fences the writer.
const patience = 3

// claim publishes a claim behind the last message.
func (t *trail) claim(ctx context.Context) error {
	subject := t.prefix + rand.Text()
	for late := 0; ; {
		at, err := t.end(ctx)
		if err == nil {
			m := &message{subject: subject, record: record{Line: at.line + 1, Kind: Claimed, Holder: t.holder, Previous: at.token}}
			if err = t.publish(ctx, m, at); err == nil || errors.Is(err, errMoved) && t.has(ctx, m, at.seq+1) {
				t.place = place{seq: at.seq + 1, own: at.seq + 1, line: m.Line, token: m.subject}
				t.state, t.fenced = nil, nil
				t.claimed.Store(true)
				return nil
			}
		}
		switch {
		case ctx.Err() != nil && errors.Is(err, ErrUnknown):
			return err
		case ctx.Err() != nil:
			return t.unanswered(ctx, err)
		case errors.Is(err, errMoved):
			if late++; late%patience == 0 {
				t.wish(ctx, subject)
			}
			_ = push.Pause(ctx, retryPause/10)
		case !final(err):
			_ = push.Pause(ctx, retryPause/10)
		default:
			return err
		}
	}
}

// wish publishes a message without a condition, once. No message of the present writer can
// follow it. A writer that is faster than this Store would keep its claims out for good. The
// wish has the subject of the claim, so that one that arrives late does not fence that.
func (t *trail) wish(ctx context.Context, subject string) {
	text, err := json.Marshal(record{Kind: wish, Holder: t.holder})
	if err != nil || !t.js.Conn().IsConnected() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, t.ackWait)
	defer cancel()
	m := &nats.Msg{Subject: subject, Header: nats.Header{recordHeader: {string(text)}}}
	_, _ = t.js.PublishMsg(ctx, m, jetstream.WithExpectStream(t.name), jetstream.WithRetryAttempts(0)) // if it fails, the next claims are late, too
}

// has reports whether the message with a sequence is m, whose acknowledgement was lost. Another claim in its place
// would be a second effect of the call.
func (t *trail) has(ctx context.Context, m *message, seq uint64) (is bool) {
	_ = t.ask(ctx, func(ctx context.Context) error {
		there, err := t.last(ctx)
		if err != nil || seq < there.first || seq > there.last || there.removed[seq] {
			return err
		}
		found, err := t.get(ctx, there.at, seq)
		is = err == nil && found.subject == m.subject && found.Kind == m.Kind
		return err
	})
	return is
}

// end returns the place behind the last message, with the token of that.
func (t *trail) end(ctx context.Context) (place, error) {
	bounded, cancel := context.WithTimeout(ctx, t.ackWait)
	defer cancel()
	there, err := t.last(bounded)
	if err != nil || there.existing == 0 {
		return place{seq: there.last}, err
	}
	m, err := t.latest(bounded, there, func(m *message) bool { return m.Kind != wish })
	switch {
	case err != nil:
		return place{}, err
	case m == nil:
		return place{seq: there.last}, nil
	}
	return place{seq: there.last, line: m.Line, token: strings.TrimPrefix(m.subject, t.prefix)}, nil
}

// Release undoes Claim, as a Resume that fails needs it: this Store writes nothing until
// the next Claim. Once the tracker has written, or tried to, Release does nothing: that
// tracker may go on, and beside another one its entries would be taken for repeated ones
// and lost. For another tracker, open another Store. Release does not use the network.
//
// Release is blocking: it waits for a Claim or another call of this Store. It takes
// effect when the claim is cleared.
func (s *Store[E]) Release() {
	_ = s.lock(context.Background())
	defer s.unlock()
	s.claimed.Store(s.used)
}
