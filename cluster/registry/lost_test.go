package registry

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/cluster/internal/natstest"
)

// flaky is a JetStream that loses answers, or requests, or does something before them.
type flaky struct {
	jetstream.JetStream
	loseAnswers  atomic.Int64 // of so many writes; sync messages do not count
	loseRequests atomic.Int64
	after        atomic.Pointer[func(m *nats.Msg)] // runs after a request whose answer is lost
	sent         atomic.Int64
}

func (f *flaky) PublishMsg(ctx context.Context, m *nats.Msg, opts ...jetstream.PublishOpt) (*jetstream.PubAck, error) {
	if m.Header.Get(nats.MsgIdHdr) == "" {
		return f.JetStream.PublishMsg(ctx, m, opts...)
	}
	f.sent.Add(1)
	if f.loseRequests.Add(-1) >= 0 {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if f.loseAnswers.Add(-1) >= 0 {
		f.JetStream.PublishMsg(ctx, m, opts...)
		if after := f.after.Load(); after != nil {
			(*after)(m)
		}
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return f.JetStream.PublishMsg(ctx, m, opts...)
}

// deaf makes the mirror of r show nothing new until the function returned is called, as
// if all that comes from the bucket were on a long way.
func deaf(t *testing.T, r *Registry[string, plan]) (hear func()) {
	block, blocked := make(chan struct{}), make(chan struct{})
	var once atomic.Bool
	f := func(Foreign) {
		if once.CompareAndSwap(false, true) {
			close(blocked)
			<-block
		}
	}
	r.config.OnForeign = f
	require.NoError(t, r.conn.Publish(r.publish+"=foreign", nil))
	<-blocked
	return func() { close(block) }
}

// A write whose answer is lost is stored once, and the mirror says so.
func testLostAnswer(t *testing.T) {
	ctx := within(t)
	kv := bucket(t, shared.js)
	f := &flaky{JetStream: shared.js}
	r := opened(t, f, kv, patient[plan])
	f.loseAnswers.Store(1)
	began := time.Now()
	v, err := r.Create(ctx, "a", plan{N: 1})
	require.NoError(t, err)
	require.Less(t, time.Since(began), r.config.Timeout, "the mirror's delivery is the answer")
	e, _ := r.Lookup("a")
	require.Equal(t, v, e.Version)
	h, err := kv.History(ctx, "a")
	require.NoError(t, err)
	require.Len(t, h, 1)
}

// A request that is lost is sent again.
func testLostRequest(t *testing.T) {
	ctx := within(t)
	kv := bucket(t, shared.js)
	f := &flaky{JetStream: shared.js}
	r := opened[plan](t, f, kv, func(c *Config[string, plan]) { c.Timeout = 50 * time.Millisecond })
	f.loseRequests.Store(2)
	v, err := r.Put(ctx, "a", plan{N: 1})
	require.NoError(t, err)
	require.GreaterOrEqual(t, f.sent.Load(), int64(3))
	e, _ := r.Lookup("a")
	require.Equal(t, v, e.Version)

	f.loseRequests.Store(1 << 40)
	short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	_, err = r.Put(short, "a", plan{N: 2})
	require.ErrorIs(t, err, ErrUnknown)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

// The answer is lost, the mirror is deaf, and another writer overwrites the value: the
// write that is sent again is refused. What has become of it is known as long as the
// mirror has seen all messages.
func testLostAnswerAndConflict(t *testing.T) {
	for name, c := range map[string]struct {
		gap, stored bool // the mirror misses a message; the first request was stored
	}{
		"seen":         {false, true},
		"seen nothing": {false, false},
		"unknown":      {true, false},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := within(t)
			kv := bucket(t, shared.js)
			f := &flaky{JetStream: shared.js}
			r := opened[plan](t, f, kv, func(c *Config[string, plan]) { c.Heartbeat, c.Timeout = patience, 100*time.Millisecond })
			v, err := r.Create(ctx, "a", plan{N: 1})
			require.NoError(t, err)
			sent := f.sent.Load() // a busy server may get a message twice
			hear := deaf(t, r)
			if c.stored {
				f.loseAnswers.Store(1)
			} else {
				f.loseRequests.Store(1)
			}
			errs := make(chan error, 1)
			var got Version
			go func() {
				var err error
				got, err = r.UpdateIf(ctx, "a", v, plan{N: 2})
				errs <- err
			}()
			eventually(t, func() bool { return f.sent.Load() > sent }, "the request")
			if c.stored {
				eventually(t, func() bool { e, err := kv.Get(ctx, "a"); return err == nil && e.Revision() > uint64(v) }, "the write")
			}
			rev, err := kv.PutString(ctx, "a", `{"N":3}`)
			require.NoError(t, err)
			eventually(t, func() bool { return f.sent.Load() > sent+1 }, "the second request")
			if c.gap {
				r.mirror.gaps.Add(1) // as one that the mirror finds
			}
			hear()
			err = <-errs
			switch {
			case c.stored:
				require.NoError(t, err)
				require.Greater(t, got, v)
				require.Less(t, uint64(got), rev)
			case c.gap:
				require.ErrorIs(t, err, ErrUnknown)
			default:
				require.ErrorIs(t, err, ErrConflict)
			}
			require.NoError(t, r.Sync(ctx))
			e, _ := r.Lookup("a")
			require.Equal(t, 3, e.Value.N)
			require.Equal(t, rev, uint64(e.Version))
		})
	}
}

// besides is a JetStream in which a leader that was deposed gets writes besides the leader, and answers
// first.
type besides struct {
	*flaky
	answer atomic.Pointer[jetstream.APIError] // of the next write
}

func (f *besides) PublishMsg(ctx context.Context, m *nats.Msg, opts ...jetstream.PublishOpt) (*jetstream.PubAck, error) {
	ack, err := f.flaky.PublishMsg(ctx, m, opts...)
	if m.Header.Get(nats.MsgIdHdr) != "" {
		if answer := f.answer.Swap(nil); answer != nil {
			return nil, answer
		}
	}
	return ack, err
}

// A write that a deposed leader has refused, and the leader has stored, is stored once, and the call
// knows it.
func testSecondAnswer(t *testing.T, c *natstest.Cluster) {
	ctx := within(t)
	js := c.JetStream()
	kv := bucket(t, js, replicated)
	f := &besides{flaky: &flaky{JetStream: js}}
	r := opened[plan](t, f, kv, func(c *Config[string, plan]) { c.Heartbeat, c.Timeout = patience, patience })
	refusal := func(code jetstream.ErrorCode, text string) *jetstream.APIError {
		return &jetstream.APIError{Code: 400, ErrorCode: code, Description: text}
	}
	value := plan{N: 7}
	n := 0
	for _, answer := range []*jetstream.APIError{
		refusal(codeWrongLast, "wrong last sequence: 0"), refusal(codeWrongLast, "wrong last sequence: 1"),
		refusal(codeWrongLastAny, "wrong last sequence"), {Code: 503, ErrorCode: 10023, Description: "insufficient resources"},
	} {
		for name, write := range map[string]func(k string, v Version) (Version, error){
			"Create": func(k string, v Version) (Version, error) {
				require.NoError(t, r.DeleteIf(ctx, k, v)) // so that the bucket expects its marker
				hear := deaf(t, r)
				f.answer.Store(answer)
				go heard(f, hear)
				return r.Create(ctx, k, value)
			},
			"Put":      func(k string, v Version) (Version, error) { return r.Put(ctx, k, value) },
			"UpdateIf": func(k string, v Version) (Version, error) { return r.UpdateIf(ctx, k, v, value) },
			"Update": func(k string, v Version) (Version, error) {
				e, err := r.Update(ctx, k, func(p plan) (plan, error) { p.N++; return p, nil })
				return e.Version, err
			},
		} {
			n++
			k := key(n)
			v, err := r.Create(ctx, k, plan{N: 6})
			require.NoError(t, err)
			if name != "Create" {
				hear := deaf(t, r)
				f.answer.Store(answer)
				go heard(f, hear)
			}
			v2, err := write(k, v)
			require.NoError(t, err, "%s: %v", name, answer)
			require.Nil(t, f.answer.Load())
			require.NoError(t, r.Sync(ctx))
			e, _ := r.Lookup(k)
			require.Equal(t, Entry[string, plan]{Key: k, Value: value, Version: v2}, e, "%s: %v", name, answer)
		}
	}
}

// heard lets a mirror hear again when the first answer has come, and another request was sent, or
// some time has passed.
func heard(f *besides, hear func()) {
	sent := f.sent.Load()
	for end := time.Now().Add(100 * time.Millisecond); time.Now().Before(end) && (f.answer.Load() != nil || f.sent.Load() < sent+2); {
		time.Sleep(time.Millisecond)
	}
	hear()
}
