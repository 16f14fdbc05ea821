package breaker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/latchfree/latchfree/cluster/internal/push"
)

const (
	publishTimeout = 2 * time.Second
	firstPause     = 20 * time.Millisecond
	longestPause   = 2 * time.Second
)

// publishAll publishes what is in the outbox until ctx ends, one hint after the other, so
// that the commands of this replica stand in the stream in their order.
func (g *Group[K]) publishAll(ctx context.Context, js jetstream.JetStream) {
	select {
	case <-g.usable:
	case <-ctx.Done():
		return
	}
	for pause := firstPause; ; {
		h, ok := g.outbox.first(ctx)
		if !ok {
			return
		}
		said, good := h.due()
		var err error
		if good {
			_, err = g.publishOne(ctx, js, said)
		}
		if err != nil && ctx.Err() != nil {
			return
		}
		// The engine will never store one that is too large, which must not keep others waiting.
		again := err != nil && !errors.Is(err, jetstream.ErrStreamMessageExceedsMaximum) && !errors.Is(err, nats.ErrMaxPayload)
		if !again {
			g.outbox.remove(h.subject(g.config.Stream), h.ID)
			if good && err == nil {
				g.counts.published.Add(1)
			} else {
				g.dropped(h)
			}
			pause = firstPause
		}
		if err != nil {
			g.config.OnError(fmt.Errorf("breaker: publish %s of %q: %w", h.Kind, h.Key, err))
		}
		if again {
			if push.Pause(ctx, pause) != nil {
				return
			}
			pause = min(2*pause, longestPause)
		}
	}
}

// publishOne publishes h, and returns its sequence. Without a connection it does not try:
// the client would keep the message, with a time that gets older, and send it when there is one.
func (g *Group[K]) publishOne(ctx context.Context, js jetstream.JetStream, h hint) (uint64, error) {
	if !js.Conn().IsConnected() {
		return 0, nats.ErrDisconnected
	}
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	options := []jetstream.PublishOpt{
		jetstream.WithMsgID(h.ID), jetstream.WithExpectStream(g.config.Stream),
		jetstream.WithRetryAttempts(0),
	}
	if kept := h.kept(); kept > 0 {
		options = append(options, jetstream.WithMsgTTL(kept.Round(time.Second)))
	}
	ack, err := js.Publish(ctx, h.subject(g.config.Stream), h.encode(), options...)
	if err != nil {
		return 0, err
	}
	g.acked.Store(ack.Sequence)
	return ack.Sequence, nil
}
