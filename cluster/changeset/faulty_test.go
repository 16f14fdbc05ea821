package changeset_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// fault is what happens to a message.
type fault int

const (
	none    fault = iota
	unsent        // it is lost on the way to the server
	unacked       // it arrives, and its acknowledgement is lost
	late          // it arrives when deliver is called
)

// faulty is a JetStream that loses messages and acknowledgements.
type faulty struct {
	jetstream.JetStream

	mu      sync.Mutex
	choose  func(n int, m *nats.Msg) fault // of the attempt with a number; nil: none
	n       int
	held    []func()
	purging error                 // of a purge
	purge   func()                // called before that is returned, unless nil
	hang    int                   // how many requests about the stream get no answer
	stale   uint64                // how many messages the answers do not know of
	refuse  []jetstream.ErrorCode // the answers to the next messages, which are not stored
	missing int                   // how many reads of a message are answered by a replica that does not have it yet
	skip    func(seq uint64) bool // whether a message does not arrive from a consumer; nil: none
}

// set makes choose decide from now on, with n from 0.
func (f *faulty) set(choose func(n int, m *nats.Msg) fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.choose, f.n = choose, 0
}

// deliver sends the messages that are late, and waits for the server's answers.
func (f *faulty) deliver() {
	f.mu.Lock()
	held := f.held
	f.held = nil
	f.mu.Unlock()
	for _, send := range held {
		send()
	}
}

func (f *faulty) PublishMsg(ctx context.Context, m *nats.Msg, options ...jetstream.PublishOpt) (*jetstream.PubAck, error) {
	f.mu.Lock()
	if len(f.refuse) > 0 {
		code := f.refuse[0]
		f.refuse = f.refuse[1:]
		f.mu.Unlock()
		return nil, fmt.Errorf("nats: %w", &jetstream.APIError{Code: 400, ErrorCode: code})
	}
	how := none
	if f.choose != nil {
		how = f.choose(f.n, m)
		f.n++
	}
	if how == late {
		sent := *m // the sender goes on to use its headers, and JetStream writes there
		sent.Header = maps.Clone(m.Header)
		f.held = append(f.held, func() { f.JetStream.PublishMsg(context.Background(), &sent, options...) })
	}
	f.mu.Unlock()
	switch how {
	case unacked:
		f.JetStream.PublishMsg(context.WithoutCancel(ctx), m, options...)
		fallthrough
	case unsent, late:
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return f.JetStream.PublishMsg(ctx, m, options...)
}

func (f *faulty) Stream(ctx context.Context, name string) (jetstream.Stream, error) {
	if f.lost() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	s, err := f.JetStream.Stream(ctx, name)
	if err != nil {
		return nil, err
	}
	return faultyStream{s, f}, nil
}

func (f *faulty) CreateConsumer(ctx context.Context, name string, c jetstream.ConsumerConfig) (jetstream.Consumer, error) {
	consumer, err := f.JetStream.CreateConsumer(ctx, name, c)
	if err != nil {
		return nil, err
	}
	return faultyConsumer{consumer, f}, nil
}

type faultyConsumer struct {
	jetstream.Consumer
	f *faulty
}

func (c faultyConsumer) Fetch(n int, options ...jetstream.FetchOpt) (jetstream.MessageBatch, error) {
	batch, err := c.Consumer.Fetch(n, options...)
	if err != nil || c.f.skip == nil {
		return batch, err
	}
	return lossy{batch, c.f.skip}, nil
}

type lossy struct {
	jetstream.MessageBatch
	skip func(uint64) bool
}

func (l lossy) Messages() <-chan jetstream.Msg {
	passed := make(chan jetstream.Msg)
	go func() {
		defer close(passed)
		for m := range l.MessageBatch.Messages() {
			meta, err := m.Metadata()
			if err != nil || l.skip(meta.Sequence.Stream) {
				continue
			}
			select {
			case passed <- m:
			case <-time.After(time.Second): // the reader has gone
			}
		}
	}()
	return passed
}

type faultyStream struct {
	jetstream.Stream
	f *faulty
}

// lost reports whether a request gets no answer.
func (f *faulty) lost() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hang--
	return f.hang >= 0
}

func (s faultyStream) CachedInfo() *jetstream.StreamInfo {
	info := *s.Stream.CachedInfo()
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	info.State.LastSeq -= s.f.stale
	return &info
}

func (s faultyStream) GetMsg(ctx context.Context, seq uint64, options ...jetstream.GetMsgOpt) (*jetstream.RawStreamMsg, error) {
	s.f.mu.Lock()
	s.f.missing--
	missing := s.f.missing >= 0
	s.f.mu.Unlock()
	if missing {
		return nil, jetstream.ErrMsgNotFound
	}
	return s.Stream.GetMsg(ctx, seq, options...)
}

func (s faultyStream) Purge(ctx context.Context, options ...jetstream.StreamPurgeOpt) error {
	if s.f.lost() {
		<-ctx.Done()
		return ctx.Err()
	}
	s.f.mu.Lock()
	err, purge := s.f.purging, s.f.purge
	s.f.mu.Unlock()
	if err != nil {
		if purge != nil {
			purge()
		}
		return err
	}
	return s.Stream.Purge(ctx, options...)
}

var errOnPurpose = errors.New("on purpose")
