package changeset

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/latchfree/latchfree/cluster/internal/push"
)

const (
	// fetchMessages and fetchBytes bound what is under way to a reader.
	fetchMessages = 256
	fetchBytes    = 8 << 20

	// idle is how long a reader waits for messages before it asks whether there are some
	// that it has not got.
	idle = 2 * time.Second
)

// inactive is how long the servers keep a consumer of a read that has ended without a word,
// or whose loop body takes its time.
const inactive = 30 * time.Second

// retryPause is the pause before something that has failed is tried again.
const retryPause = 100 * time.Millisecond

// errEnough ends a read.
var errEnough = errors.New("changeset: enough")

// read calls fn with the messages behind a sequence, in order, until fn returns an error,
// or ctx ends. It waits for messages that are not there yet, and for servers that are
// away. It returns fn's error, the cause of ctx, or why there will be no more messages:
// errGone if the stream has had a message upTo, and has it no more. UpTo may be 0.
//
// All messages that it yields are committed. Each one has all before it in the stream,
// but for those that were removed.
func (s *stream) read(ctx context.Context, after, upTo uint64, fn func(*message) error) error {
	r := &reading{stream: s, after: after, upTo: upTo}
	defer r.drop()
	var last error
	for {
		if r.stop != nil {
			return r.stop
		}
		err := r.fetch(ctx, fn)
		switch {
		case r.stop != nil:
			return r.stop
		case ctx.Err() != nil:
			if denied := r.denied(); r.consumer == nil && denied != nil {
				last = denied
			}
			if last == nil {
				return context.Cause(ctx)
			}
			return fmt.Errorf("%w: %w", context.Cause(ctx), last)
		case errors.Is(err, ErrStream) || errors.Is(err, ErrCorrupt) || closed(err):
			return err
		}
		if last = err; err != nil {
			stuck := r.consumer != nil && r.delivered == 0
			r.drop()
			if stuck {
				r.one(ctx, fn)
			}
			_ = push.Pause(ctx, retryPause)
		}
	}
}

// reading is a read that is under way.
type reading struct {
	*stream
	after     uint64 // the sequence of the last message that fn got
	upTo      uint64 // that of the last message that fn wants; 0: there is none
	consumer  jetstream.Consumer
	delivered uint64    // messages that consumer has delivered
	behind    time.Time // since when the stream has ended before after; zero: it does not
	stop      error     // fn's error
}

// drop forgets the consumer, and removes it without waiting.
func (r *reading) drop() {
	if r.consumer == nil {
		return
	}
	name := r.consumer.CachedInfo().Name
	r.consumer = nil
	_ = r.js.Conn().Publish(push.API(r.js)+"CONSUMER.DELETE."+r.name+"."+name, nil) // if it is lost, the server removes the consumer later
}

// fetch gets some messages. An error means that another consumer is needed.
func (r *reading) fetch(ctx context.Context, fn func(*message) error) error {
	bounded, cancel := context.WithTimeout(ctx, idle)
	defer cancel()
	if r.consumer == nil {
		if err := r.consume(bounded); err != nil {
			return err
		}
	}
	limit := max(fetchBytes, 2*int(r.js.Conn().MaxPayload()))
	batch, err := r.consumer.Fetch(fetchMessages, jetstream.FetchContext(bounded), jetstream.FetchMaxBytes(limit))
	if err != nil {
		return err
	}
	got := false
	for raw := range batch.Messages() {
		if ctx.Err() != nil { // fn may have taken long, or ended it
			return context.Cause(ctx)
		}
		got = true
		meta, err := raw.Metadata()
		if err != nil {
			return err
		}
		if r.delivered++; meta.Sequence.Consumer != r.delivered || meta.Sequence.Stream <= r.after {
			return errors.New("changeset: a message was lost on the way, or repeated") // as when a fetch ends before it comes
		}
		m, err := parse(meta.Sequence.Stream, raw.Subject(), raw.Headers(), raw.Data())
		if err == nil {
			err = fn(m)
		}
		if err != nil {
			r.stop = err
			return err
		}
		r.after = meta.Sequence.Stream
	}
	if got {
		r.behind = time.Time{}
		return nil
	}
	if err := batch.Error(); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return r.silent(ctx)
}

// one gets the next message without a consumer, once: it may be one that none delivers,
// because it is too large for a fetch, or looks like a status of the server.
func (r *reading) one(ctx context.Context, fn func(*message) error) {
	ctx, cancel := context.WithTimeout(ctx, idle)
	defer cancel()
	there, err := r.last(ctx)
	if err != nil {
		return
	}
	seq := max(r.after+1, there.first)
	for there.removed[seq] {
		seq++
	}
	if seq > there.existing {
		return
	}
	m, err := r.get(ctx, there.at, seq)
	switch {
	case err == nil:
		if r.stop = fn(m); r.stop == nil {
			r.after = seq
		}
	case errors.Is(err, ErrForeign):
		r.stop = err
	}
}

// consume makes a consumer that begins behind the last message.
func (r *reading) consume(ctx context.Context) error {
	config := jetstream.ConsumerConfig{
		DeliverPolicy:     jetstream.DeliverByStartSequencePolicy,
		OptStartSeq:       r.after + 1,
		AckPolicy:         jetstream.AckNonePolicy,
		InactiveThreshold: inactive,
		Replicas:          1,
		MemoryStorage:     true,
	}
	c, err := r.js.CreateConsumer(ctx, r.name, config)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return fmt.Errorf("%w: there is no stream %q", ErrStream, r.name)
	}
	if err == nil {
		r.consumer, r.delivered = c, 0
	}
	return err
}

// rewoundAfter is how long a stream must have ended before a message that it had, before
// that is believed: a leader that is cut off from the others answers with old contents
// for up to 10 seconds.
const rewoundAfter = 12 * time.Second

// silent asks whether there are messages that have not come.
func (r *reading) silent(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, idle)
	defer cancel()
	info, err := r.last(bounded)
	switch {
	case err != nil:
		return err
	case info.existing > r.after:
		return errors.New("changeset: consumer is silent")
	case r.after < r.upTo && r.upTo <= info.last:
		r.stop = errGone
		return r.stop
	case info.last >= r.after:
		r.behind = time.Time{}
		return nil
	}
	if r.behind.IsZero() {
		r.behind = time.Now()
	} else if time.Since(r.behind) > rewoundAfter {
		r.stop = info.rewound(r.after)
		return r.stop
	}
	return nil
}
