package changeset

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/latchfree/latchfree/cluster/internal/push"
)

// headroom is what a message may have besides its body: the headers with the record, the
// ID, the stream's name and the conditions.
func (t *trail) headroom(record []byte) int {
	return len(record) + len(t.place.token) + len(t.name) + 384
}

// publishAll publishes a record, in parts if necessary, and changes the state.
func (t *trail) publishAll(ctx context.Context, r *record, body []byte) error {
	r.Line, r.Part, r.Parts = t.place.line+1, 1<<20, 1<<20 // so that the numbers have as many digits as they may get
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	size := t.limit() - t.headroom(text)
	if size <= 0 {
		_, _, _ = t.info(ctx) // the next call has the limit of now
		return fmt.Errorf("%w: messages are too short for a record", ErrStream)
	}
	r.Part, r.Parts = 0, 0
	if len(body) > size {
		r.Parts = (len(body) + size - 1) / size
	}
	for {
		chunk := body
		if r.Parts > 0 {
			r.Part++
			chunk = body[:min(size, len(body))]
		}
		body = body[len(chunk):]
		r.Line = t.place.line + 1
		m := &message{subject: t.place.token, record: *r, data: chunk}
		if err := t.publish(ctx, m, t.place); err != nil {
			if errors.Is(err, jetstream.ErrStreamMessageExceedsMaximum) {
				_, _, _ = t.info(ctx) // the next call makes shorter messages
			}
			return err
		}
		if err := t.advance(m); err != nil {
			return err
		}
		if r.Part == r.Parts {
			return nil
		}
	}
}

// limit returns how many bytes a message may have.
func (t *trail) limit() int {
	limit := int(t.js.Conn().MaxPayload())
	if m := int(t.maxMessage.Load()); m > 0 {
		limit = min(limit, m)
	}
	return limit
}

// advance changes the state by a message that the stream has behind place.
func (t *trail) advance(m *message) error {
	if _, err := t.state.apply(m); err != nil {
		return err
	}
	t.place.seq, t.place.own, t.place.line = m.seq, m.seq, t.state.line
	return nil
}

// errMoved: the last message is not the one that was expected.
var errMoved = errors.New("changeset: stream has gone on")

// Errors of the server that jetstream has no names for.
const (
	codeWrongLast         = jetstream.JSErrCodeStreamWrongLastSequence
	codeWrongLastConstant = jetstream.JSErrCodeStreamWrongLastSequenceConstant
	codeInProcess         = jetstream.ErrorCode(10158)
)

// publish publishes a message behind a place, and sets its sequence. It tries again
// until it has an answer, or ctx ends. It returns errMoved if the message cannot go there.
func (t *trail) publish(ctx context.Context, m *message, at place) error {
	text, err := json.Marshal(m.record)
	if err != nil {
		return err
	}
	t.ids++
	id := fmt.Sprintf("%s.%d", m.subject, t.ids)
	options := []jetstream.PublishOpt{jetstream.WithMsgID(id), jetstream.WithExpectStream(t.name), jetstream.WithExpectLastSequence(at.seq), jetstream.WithRetryAttempts(0)}
	if m.subject == at.token {
		options = append(options, jetstream.WithExpectLastSequencePerSubject(at.own))
	}
	var last error
	for began := time.Now(); ; {
		if push.Connected(ctx, t.js.Conn()) != nil {
			return t.unanswered(ctx, cmp.Or(last, nats.ErrDisconnected))
		}
		msg := &nats.Msg{Subject: m.subject, Header: nats.Header{recordHeader: {string(text)}}, Data: m.data}
		attempt, cancel := context.WithTimeout(ctx, t.ackWait)
		ack, err := t.js.PublishMsg(attempt, msg, options...)
		cancel()
		if err == nil {
			if ack.Sequence != at.seq+1 {
				return errMoved // a duplicate elsewhere: the stream is not the one that it was
			}
			m.seq = ack.Sequence // LP(Start, Append, Seal, Abort, Applied, Prune, Claim): nil, before the acknowledgement
			return nil
		}
		if err, final := t.refused(err); final {
			return err
		}
		if ctx.Err() == nil && errors.Is(err, jetstream.ErrNoStreamResponse) && time.Since(began) > t.ackWait {
			if _, _, gone := t.info(ctx); errors.Is(gone, ErrStream) {
				return gone
			}
		}
		if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
			last = err
			_ = push.Pause(ctx, retryPause)
		}
		if ctx.Err() != nil {
			return t.unanswered(ctx, last)
		}
	}
}

// refused returns the error of a message, and whether that is final.
func (t *trail) refused(err error) (error, bool) {
	var refusal *jetstream.APIError
	switch {
	case errors.As(err, &refusal):
		switch refusal.ErrorCode {
		case codeWrongLast, codeWrongLastConstant:
			return errMoved, true
		case codeInProcess:
			return err, false
		}
		return err, true
	case closed(err), errors.Is(err, nats.ErrMaxPayload), errors.Is(err, nats.ErrHeadersNotSupported), errors.Is(err, nats.ErrBadSubject):
		return err, true
	}
	return err, false
}
