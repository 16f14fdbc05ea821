package changeset

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// trail is the part of a Store that does not depend on the type of entries.
type trail struct {
	*stream
	holder         string
	claimTimeout   time.Duration
	pruneUnapplied bool

	// turn is held by the call that writes, and guards the fields below.
	turn    chan struct{}
	claimed atomic.Bool // written by holders of turn
	place   place       // behind the last message that is known
	fenced  error       // an ErrFenced, or nil
	state   *state      // up to place; nil until it is needed
	ids     uint64      // message IDs given away
	purged  uint64      // the sequence below which messages are purged, as far as known
}

// place is where the next message goes.
type place struct {
	seq   uint64 // the last sequence of the stream
	own   uint64 // the last sequence of the claim's subject
	line  uint64 // of the message before it
	token string // the subject of the claim
}

// lock waits for the turn to write.
func (t *trail) lock(ctx context.Context) error {
	select {
	case t.turn <- struct{}{}:
		return nil
	default:
	}
	select {
	case t.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (t *trail) unlock() { <-t.turn }

// write makes the record that plan returns durable. Plan looks at the state, and returns
// nil if that has all of the call already, or an error. It is called again when the
// stream turns out to have more.
func (t *trail) write(ctx context.Context, method string, plan func(*state) (*record, []byte, error)) error {
	needContext(ctx, "Store."+method)
	if err := t.lock(ctx); err != nil {
		return failed(method, err)
	}
	defer t.unlock()
	if err := t.ready(ctx); err != nil {
		return failed(method, err)
	}
	for {
		r, body, err := plan(t.state)
		if err != nil || r == nil {
			return err
		}
		switch err := t.publishAll(ctx, r, body); {
		case err == nil:
			return nil
		case errors.Is(err, errMoved):
			if err = t.look(ctx); err == nil {
				continue
			}
			if r, _, conflict := plan(t.state); errors.Is(err, ErrFenced) && r == nil && conflict == nil {
				return nil // an earlier attempt was stored before the trail was claimed
			}
			return failed(method, err)
		case !errors.Is(err, errSmaller):
			return failed(method, err)
		}
	}
}

// ready returns an error if the trail is not to be written, and makes the state.
func (t *trail) ready(ctx context.Context) error {
	switch {
	case !t.claimed.Load():
		return ErrUnclaimed
	case t.fenced != nil:
		return t.fenced
	case t.state != nil:
		return nil
	}
	s, err := t.replayOwn(ctx, false)
	if err != nil {
		return err
	}
	t.state = s
	return nil
}

// replayOwn returns what the stream says up to this Store's last message. If that is
// damaged because a later writer has pruned it, the error is its ErrFenced.
func (t *trail) replayOwn(ctx context.Context, keep bool) (*state, error) {
	s, err := t.replay(ctx, t.place.own, keep)
	if !errors.Is(err, ErrCorrupt) {
		return s, err
	}
	if fenced := t.ask(ctx, t.held); errors.Is(fenced, ErrFenced) {
		t.fenced = fenced
		return nil, fenced
	}
	return nil, err
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

// headroom is what a message may have besides its body: the headers with the record, the
// ID, the stream's name and the conditions.
func (t *trail) headroom(record []byte) int {
	return len(record) + len(t.place.token) + len(t.name) + 384
}

// errSmaller: the server takes smaller messages than it did.
var errSmaller = errors.New("changeset: messages must be smaller")

// publishAll publishes a record, in parts if necessary, and changes the state.
func (t *trail) publishAll(ctx context.Context, r *record, body []byte) error {
	limit := t.limit()
	r.Line, r.Part, r.Parts = t.place.line+1, 1<<20, 1<<20 // so that the numbers have as many digits as they may get
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	size := limit - t.headroom(text)
	if size <= 0 { // or perhaps no longer
		_, _, err := t.info(ctx)
		if err == nil {
			limit = t.limit()
			size = limit - t.headroom(text)
		}
	}
	if size <= 0 {
		return fmt.Errorf("%w: messages of at most %d bytes are too small", ErrStream, limit)
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
			if t.shrunk(ctx, err, limit) {
				return errSmaller
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

// shrunk reports whether a message has failed because the limit is lower than it was.
func (t *trail) shrunk(ctx context.Context, err error, limit int) bool {
	if errors.Is(err, jetstream.ErrStreamMessageExceedsMaximum) {
		_, _, err = t.info(ctx) // which looks at the stream's limit
		return err == nil && t.limit() < limit
	}
	return errors.Is(err, nats.ErrMaxPayload) && t.limit() < limit
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
		if err := t.connected(ctx); err != nil {
			return t.unanswered(ctx, cmp.Or(last, err))
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
			_ = pause(ctx, retryPause)
		}
		if ctx.Err() != nil {
			return t.unanswered(ctx, last)
		}
	}
}

// connected waits until the connection is up. Without one, the client would keep a message,
// and send it when there is one: a claim that was given up could take the trail then.
func (t *trail) connected(ctx context.Context) error {
	for conn := t.js.Conn(); !conn.IsConnected() && !conn.IsClosed(); {
		if pause(ctx, retryPause/10) != nil {
			return nats.ErrDisconnected
		}
	}
	return nil
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
		if pause(ctx, retryPause) != nil {
			return t.unanswered(ctx, why)
		}
	}
}

// errStale: a replica with old contents has answered.
var errStale = errors.New("changeset: a replica is behind")

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
		return false, pause(bounded, retryPause/10)
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
			return more, errStale
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
