// Package push reads a stream through a push consumer without acknowledgements. A consumer that misses a delivery, or
// whose server is silent, is given up: whoever reads makes another one.
package push

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"
)

const (
	// missedHeartbeats in a row give a consumer up.
	missedHeartbeats = 3
	// interest is how long a server keeps a consumer that nobody listens to, in heartbeats.
	interest = 10
)

var (
	// ErrSilent reports a server that has sent no heartbeats.
	ErrSilent = errors.New("the server is silent")
	// ErrMissed reports a delivery that has not come.
	ErrMissed = errors.New("a delivery was lost")
)

// Consumer delivers the last message of each subject, and then what is stored. It is of one replica, in memory, with
// flow control and heartbeats. Its methods belong to one goroutine.
type Consumer struct {
	// Raw has what comes from the server. Each is for Read.
	Raw chan *nats.Msg
	// Ticks has a tick in each heartbeat. Each is for Tick.
	Ticks <-chan time.Time

	conn      *nats.Conn
	inbox     string
	remove    string // the subject that deletes the consumer
	sub       *nats.Subscription
	ticker    *time.Ticker
	end       context.CancelFunc
	delivered uint64 // the number of the last delivery
	silence   int    // ticks since something has come
}

// Message is a delivery.
type Message struct {
	*nats.Msg
	Sequence uint64    // in the stream
	Stored   time.Time // by the clock of the server
}

// Open makes a consumer of the subjects of a stream that a filter names. It waits for the server no longer than timeout.
func Open(ctx context.Context, js jetstream.JetStream, stream, filter string, heartbeat, timeout time.Duration) (*Consumer, error) {
	conn, name := js.Conn(), nuid.Next()
	c := &Consumer{
		Raw: make(chan *nats.Msg, 256), conn: conn, inbox: conn.NewInbox(),
		remove: API(js) + "CONSUMER.DELETE." + stream + "." + name, ticker: time.NewTicker(heartbeat),
	}
	c.Ticks = c.ticker.C
	ctx, c.end = context.WithCancel(ctx)
	bounded, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	_, err := js.CreatePushConsumer(bounded, stream, jetstream.ConsumerConfig{
		Name: name, DeliverSubject: c.inbox, FilterSubject: filter,
		DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy, AckPolicy: jetstream.AckNonePolicy,
		FlowControl: true, IdleHeartbeat: heartbeat,
		InactiveThreshold: interest * heartbeat,
		Replicas:          1, MemoryStorage: true,
	})
	if err == nil {
		c.sub, err = conn.Subscribe(c.inbox, func(m *nats.Msg) {
			select {
			case c.Raw <- m:
			case <-ctx.Done():
			}
		})
	}
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("no consumer of stream %s: %w", stream, err)
	}
	_ = c.sub.SetPendingLimits(-1, -1) // flow control bounds what is on its way
	return c, nil
}

// Close deletes the consumer without waiting. If the server does not hear of that, it does so by itself after a while.
func (c *Consumer) Close() {
	c.end()
	c.ticker.Stop()
	if c.sub != nil {
		_ = c.sub.Unsubscribe()
	}
	if c.conn.IsConnected() {
		_ = c.conn.Publish(c.remove, nil)
	}
}

// Read returns the delivery that raw is, or false if it is none. After an error nothing more is to be read.
func (c *Consumer) Read(raw *nats.Msg) (m Message, ok bool, err error) {
	c.silence = 0
	if raw.Subject == c.inbox { // a delivery has the subject of its message
		return m, false, c.control(raw)
	}
	meta, err := raw.Metadata()
	if err != nil {
		return m, false, nil // not of the consumer
	}
	if meta.Sequence.Consumer != c.delivered+1 {
		return m, false, ErrMissed
	}
	c.delivered++
	return Message{raw, meta.Sequence.Stream, meta.Timestamp}, true, nil
}

// control answers what is no delivery.
func (c *Consumer) control(m *nats.Msg) error {
	if m.Header.Get("Status") != "100" {
		return fmt.Errorf("the server ends the consumer: %s", m.Header.Get("Description"))
	}
	if m.Reply != "" { // flow control: all that came before it was read
		return c.conn.Publish(m.Reply, nil)
	}
	if stalled := m.Header.Get("Nats-Consumer-Stalled"); stalled != "" {
		if err := c.conn.Publish(stalled, nil); err != nil {
			return err
		}
	}
	if last, err := strconv.ParseUint(m.Header.Get("Nats-Last-Consumer"), 10, 64); err == nil && last != c.delivered {
		return ErrMissed
	}
	return nil
}

// Tick returns an error if too many heartbeats are missing. The clock would say nothing of the server: a process that
// was stopped, and a reader that was held up, have not read yet what has come. They miss all ticks but one.
func (c *Consumer) Tick() error {
	if c.silence++; c.silence > missedHeartbeats {
		return ErrSilent
	}
	return nil
}

// Next waits for a delivery, and returns false after a heartbeat in which none has come.
func (c *Consumer) Next(ctx context.Context) (m Message, ok bool, err error) {
	for {
		select {
		case raw := <-c.Raw:
			if m, ok, err = c.Read(raw); ok || err != nil {
				return m, ok, err
			}
		case <-c.Ticks:
			return m, false, c.Tick()
		case <-ctx.Done():
			return m, false, context.Cause(ctx)
		}
	}
}

// Pause waits for d, unless ctx ends: then it returns the cause.
func Pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Connected waits until a connection is up, or closed for good. Without one, the client would keep a message, and send it
// when there is one, perhaps minutes later.
func Connected(ctx context.Context, conn *nats.Conn) error {
	for !conn.IsConnected() && !conn.IsClosed() {
		if err := Pause(ctx, 10*time.Millisecond); err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}

// API returns what the subjects of the servers' API begin with.
func API(js jetstream.JetStream) string {
	o := js.Options()
	switch {
	case o.Domain != "":
		return "$JS." + o.Domain + ".API."
	case o.APIPrefix != "":
		return strings.TrimSuffix(o.APIPrefix, ".") + "."
	}
	return jetstream.DefaultAPIPrefix
}
