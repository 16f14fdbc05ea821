package changeset_test

import (
	"context"
	"errors"
	"sync"

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
	purging error // of a purge
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
	how := none
	if f.choose != nil {
		how = f.choose(f.n, m)
		f.n++
	}
	if how == late {
		f.held = append(f.held, func() { f.JetStream.PublishMsg(context.Background(), m, options...) })
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
	s, err := f.JetStream.Stream(ctx, name)
	return faultyStream{s, f}, err
}

type faultyStream struct {
	jetstream.Stream
	*faulty
}

func (s faultyStream) Purge(ctx context.Context, options ...jetstream.StreamPurgeOpt) error {
	s.mu.Lock()
	err := s.purging
	s.mu.Unlock()
	if err != nil {
		return err
	}
	return s.Stream.Purge(ctx, options...)
}

var errOnPurpose = errors.New("on purpose")
