package changeset

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/latchfree/latchfree/cluster/internal/push"
)

// StreamConfig returns the settings of a stream that keeps a trail: files, no limits, and
// the subjects <name>.*, one for each claim. Replicas is 1, 3 or 5. The caller creates the
// stream:
//
//	_, err := js.CreateStream(ctx, changeset.StreamConfig("CHANGES", 3))
func StreamConfig(name string, replicas int) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:        name,
		Description: "changesets of a cowchangeset.Tracker",
		Subjects:    []string{name + ".*"},
		Retention:   jetstream.LimitsPolicy,
		Discard:     jetstream.DiscardNew,
		Storage:     jetstream.FileStorage,
		Replicas:    replicas,
	}
}

// check returns an ErrStream that names the setting at fault.
func check(c jetstream.StreamConfig) error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %q has %s", ErrStream, c.Name, fmt.Sprintf(format, args...))
	}
	discards := c.MaxAge > 0 || c.Discard == jetstream.DiscardOld && (c.MaxMsgs > 0 || c.MaxBytes > 0 || c.MaxMsgsPerSubject > 0) ||
		c.MaxMsgsPerSubject > 0 && !c.DiscardNewPerSubject
	switch {
	case len(c.Subjects) != 1 || !strings.HasSuffix(c.Subjects[0], ".*") || strings.ContainsAny(strings.TrimSuffix(c.Subjects[0], "*"), "*>"):
		return bad("the subjects %q: must be one, such as %q", c.Subjects, c.Name+".*")
	case c.Mirror != nil || len(c.Sources) > 0:
		return bad("sources: must have none")
	case c.SubjectTransform != nil:
		return bad("a subject transform: must have none")
	case c.NoAck:
		return bad("NoAck set: must acknowledge")
	case c.AllowRollup:
		return bad("AllowRollup set: one message could remove all others")
	case c.Retention != jetstream.LimitsPolicy:
		return bad("retention %v: must be %v, so that no consumer removes messages", c.Retention, jetstream.LimitsPolicy)
	case c.ConsumerLimits.InactiveThreshold > 0 && c.ConsumerLimits.InactiveThreshold < inactive:
		return bad("ConsumerLimits.InactiveThreshold %v: must be at least %v, or none", c.ConsumerLimits.InactiveThreshold, inactive)
	case c.PersistMode == jetstream.AsyncPersistMode:
		return bad("an asynchronous PersistMode: it acknowledges what is in no file")
	case c.Storage != jetstream.FileStorage:
		return bad("storage %v: must be %v", c.Storage, jetstream.FileStorage)
	case discards:
		return bad("MaxAge %v, MaxMsgs %d, MaxBytes %d, MaxMsgsPerSubject %d with %v: it drops old messages; must have no MaxAge, and limits only with %v",
			c.MaxAge, c.MaxMsgs, c.MaxBytes, c.MaxMsgsPerSubject, c.Discard, jetstream.DiscardNew)
	}
	return nil
}

// stream is where messages are read.
type stream struct {
	js      jetstream.JetStream
	name    string
	prefix  string        // of the subjects
	ackWait time.Duration // how long a request waits for its answer before it is sent again

	maxMessage atomic.Int32 // the stream's MaxMsgSize, when last seen; not positive: none
}

// open looks a stream up, and checks its settings.
func open[E any](ctx context.Context, js jetstream.JetStream, o Options[E]) (*stream, error) {
	s := &stream{js: js, name: o.Stream, ackWait: cmp.Or(o.AckWait, time.Second)}
	err := s.ask(ctx, func(ctx context.Context) error {
		info, _, err := s.info(ctx)
		if err == nil {
			s.prefix = strings.TrimSuffix(info.Config.Subjects[0], "*")
		}
		return err
	})
	return s, err
}

// ask makes a request until it has an answer, or an error that remains, or ctx ends. A
// request gets no answer if it has gone to a server that was cut off, or has ended.
func (s *stream) ask(ctx context.Context, request func(context.Context) error) error {
	var why error
	for {
		attempt, cancel := context.WithTimeout(ctx, s.ackWait)
		err := request(attempt)
		cancel()
		if err == nil || final(err) {
			return err
		}
		if why == nil || !errors.Is(err, context.DeadlineExceeded) {
			why = err
		}
		if ctx.Err() != nil || push.Pause(ctx, retryPause) != nil {
			return s.unanswered(ctx, why)
		}
	}
}

// final reports whether an error of the servers remains if the request is repeated.
func final(err error) bool {
	var refusal *jetstream.APIError
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return false // the leader has said that it is there: a replica that is behind has answered
	case errors.As(err, &refusal):
		return refusal.Code < 500
	}
	return errors.Is(err, ErrStream) || errors.Is(err, ErrForeign) || errors.Is(err, ErrCorrupt) || errors.Is(err, ErrFenced) ||
		errors.Is(err, jetstream.ErrInvalidStreamName) || closed(err)
}

// unanswered returns an ErrUnknown, with the reason if there is one.
func (s *stream) unanswered(ctx context.Context, why error) error {
	if denied := s.denied(); denied != nil {
		why = denied
	}
	if why == nil || errors.Is(why, context.Cause(ctx)) {
		return fmt.Errorf("%w: %w", ErrUnknown, context.Cause(ctx))
	}
	return fmt.Errorf("%w: %w: %w", ErrUnknown, context.Cause(ctx), why)
}

// denied returns the last error of the connection if that is about a permission: a server
// does not answer what it denies.
func (s *stream) denied() error {
	if err := s.js.Conn().LastError(); errors.Is(err, nats.ErrPermissionViolation) {
		return err
	}
	return nil
}

// info asks the stream's leader for its state, once, and checks its settings.
func (s *stream) info(ctx context.Context) (*jetstream.StreamInfo, jetstream.Stream, error) {
	ctx, cancel := context.WithTimeout(ctx, s.ackWait)
	defer cancel()
	at, err := s.js.Stream(ctx, s.name)
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		return nil, nil, fmt.Errorf("%w: there is no stream %q", ErrStream, s.name)
	case err != nil:
		return nil, nil, fmt.Errorf("%w (stream %q)", err, s.name)
	}
	info := at.CachedInfo()
	if err := check(info.Config); err != nil {
		return nil, nil, err
	}
	if s.prefix != "" && info.Config.Subjects[0] != s.prefix+"*" {
		return nil, nil, fmt.Errorf("%w: %q has other subjects than before: %q", ErrStream, s.name, info.Config.Subjects)
	}
	s.maxMessage.Store(info.Config.MaxMsgSize)
	return info, at, nil
}

// ends says which messages a stream has.
type ends struct {
	first, last uint64 // sequences
	existing    uint64 // the sequence of the last message that was not removed; 0 if there was none ever
	removed     map[uint64]bool
	at          jetstream.Stream
}

// rewound returns an ErrRewound about a message that the stream had.
func (e ends) rewound(had uint64) error {
	return fmt.Errorf("%w: it ends at %d, and had message %d", ErrRewound, e.last, had)
}

// last asks the stream's leader which messages there are, once.
func (s *stream) last(ctx context.Context) (ends, error) {
	info, at, err := s.info(ctx)
	if err == nil && info.State.NumDeleted > 0 { // somebody has removed messages, perhaps foreign ones
		info, err = at.Info(ctx, jetstream.WithDeletedDetails(true))
	}
	if err != nil {
		return ends{}, err
	}
	e := ends{first: info.State.FirstSeq, last: info.State.LastSeq, removed: make(map[uint64]bool), at: at}
	if info.State.Msgs == 0 {
		if e.last > 0 && info.Config.FirstSeq != e.last+1 {
			return ends{}, fmt.Errorf("%w: the stream is empty, and had %d messages", ErrCorrupt, e.last)
		}
		return e, nil
	}
	for _, seq := range info.State.Deleted {
		e.removed[seq] = true
	}
	for e.existing = e.last; e.removed[e.existing]; {
		e.existing--
	}
	return e, nil
}

// latest returns the last message that is what is wanted, or nil.
func (s *stream) latest(ctx context.Context, there ends, is func(*message) bool) (*message, error) {
	for seq := there.existing; seq > 0 && seq >= there.first; {
		if there.removed[seq] {
			seq--
			continue
		}
		m, err := s.get(ctx, there.at, seq)
		if err != nil || is(m) {
			return m, err
		}
		seq -= min(seq, uint64(max(m.Part, 1))) // the parts before one are like it
	}
	return nil, nil
}

// closed reports whether err says that the connection is closed for good.
func closed(err error) bool {
	return errors.Is(err, nats.ErrConnectionClosed) || errors.Is(err, nats.ErrConnectionDraining)
}

// get returns the message with a sequence, or jetstream.ErrMsgNotFound.
func (s *stream) get(ctx context.Context, at jetstream.Stream, seq uint64) (*message, error) {
	raw, err := at.GetMsg(ctx, seq)
	if err != nil {
		return nil, err
	}
	return parse(raw.Sequence, raw.Subject, raw.Header, raw.Data)
}
