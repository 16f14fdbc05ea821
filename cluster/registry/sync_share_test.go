package registry

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/cluster/internal/push"
)

// One of many replicas writes the sync messages for all; another one does when it has gone.
func testSharedBeats(t *testing.T) {
	const n = 8
	ctx := within(t)
	kv := bucket(t, shared.js)
	maxLag := func(c *Config[string, int]) { c.MaxLag = 600 * time.Millisecond }
	var all []*Registry[string, int]
	for range n {
		all = append(all, opened(t, shared.js, kv, maxLag))
	}
	quiet := func(all []*Registry[string, int]) func() bool {
		return func() bool {
			first, began := last(t, kv), time.Now()
			time.Sleep(all[0].config.MaxLag)
			for _, r := range all {
				if r.Fresh() != nil || r.begun.Add(time.Duration(r.beater.proven.Load())).Before(began) {
					return false
				}
			}
			return last(t, kv)-first <= n // and 6 n if each beats by itself
		}
	}
	eventually(t, quiet(all), "shared beats")
	var rest, hosts []*Registry[string, int]
	eventually(t, func() bool { // a stall ends what they share for a while
		rest, hosts = nil, nil
		for _, r := range all {
			if host := r.sharing.current(); host != "" && host != r.sharing.name {
				rest = append(rest, r)
			} else {
				hosts = append(hosts, r)
			}
		}
		return len(rest) > 0
	}, "a host")
	for _, r := range hosts {
		require.NoError(t, r.Close(ctx))
	}
	eventually(t, quiet(rest), "shared beats without the host")
}

// last returns the last revision of a bucket.
func last(t *testing.T, kv jetstream.KeyValue) uint64 {
	s, err := shared.js.Stream(within(t), "KV_"+kv.Bucket())
	require.NoError(t, err)
	return s.CachedInfo().State.LastSeq
}

// What a registry makes of offers and answers of others.
func testOffers(t *testing.T) {
	ctx := within(t)
	kv := bucket(t, shared.js)
	r := opened(t, shared.js, kv, func(c *Config[string, int]) { patient(c); c.MaxLag = time.Minute }) // so that it does nothing by itself
	period := r.sharing.period.Nanoseconds()
	stream, err := shared.js.Stream(ctx, r.stream)
	require.NoError(t, err)
	created := stream.CachedInfo().Created.UnixNano()
	offer := func(text string) uint64 {
		ack, err := shared.js.PublishMsg(ctx, &nats.Msg{Subject: r.prefix + syncPrefix + "99", Header: nats.Header{offerHeader: {text}}})
		require.NoError(t, err)
		return ack.Sequence
	}
	for _, bad := range []string{
		"nonsense", fmt.Sprint("host ", period), fmt.Sprint("host ", period+1, " ", created), fmt.Sprint("host 0 ", created),
		fmt.Sprint("host -1 ", created), fmt.Sprint("host ", period, " ", created+1), fmt.Sprint("a.b ", period, " ", created),
		fmt.Sprint("> ", period, " ", created),
	} {
		offer(bad)
		require.NoError(t, r.Sync(ctx))
		require.Empty(t, r.sharing.current(), bad)
	}
	offer(fmt.Sprint("host ", period, " ", created))
	require.NoError(t, r.Sync(ctx))
	require.Equal(t, "host", r.sharing.current())

	proven := r.beater.proven.Load()
	unproved := func(gone bool) {
		t.Helper()
		g, p := r.shareBeat("host")
		require.False(t, p)
		require.Equal(t, gone, g)
		require.Equal(t, proven, r.beater.proven.Load())
	}
	unproved(true) // nobody is there
	var answer func() string
	var asked time.Duration
	sub, err := shared.js.Conn().Subscribe(sharePrefix+kv.Bucket()+".host", func(m *nats.Msg) {
		asked = time.Since(r.begun)
		_ = m.Respond([]byte(answer()))
	})
	require.NoError(t, err)
	defer func() { _ = sub.Unsubscribe() }()
	good := func() string { return strconv.FormatUint(offer(""), 10) }

	answer = func() string { return "nonsense" }
	unproved(true)
	answer = func() string { return strconv.FormatUint(r.mirror.position.Load(), 10) }
	unproved(true)
	answer = func() string { r.mirror.gaps.Add(1); return good() }
	unproved(false)
	answer = func() string { r.mirror.settled.Store(false); return good() }
	unproved(false)
	r.mirror.settled.Store(true)

	before := time.Since(r.begun)
	_, err = kv.PutString(ctx, "a", "7")
	require.NoError(t, err)
	answer = good
	_, p := r.shareBeat("host")
	require.True(t, p)
	n, _ := r.Get("a")
	require.Equal(t, 7, n)
	require.Greater(t, r.beater.proven.Load(), int64(before))
	require.Less(t, r.beater.proven.Load(), int64(asked), "the request is what proves it")

	// The mirror must have the revision itself.
	answer = func() string { return strconv.FormatUint(r.mirror.position.Load()+1, 10) }
	done := make(chan bool)
	go func() {
		_, p := r.shareBeat("host")
		done <- p
	}()
	select {
	case <-done:
		t.Fatal("proved by a revision that the mirror does not have")
	case <-time.After(50 * time.Millisecond):
	}
	good()
	require.True(t, <-done)

	// What a listing meets may be old.
	offer(fmt.Sprint("host ", period, " ", created))
	late := opened(t, shared.js, kv, func(c *Config[string, int]) { c.MaxLag = time.Minute })
	require.NotEqual(t, "host", late.sharing.current())

	require.NoError(t, r.Sync(ctx))
	require.NotEmpty(t, r.sharing.current())
	old := *r.sharing.last.Load()
	old.heard = old.heard.Add(-3 * r.sharing.period)
	r.sharing.last.Store(&old)
	require.Empty(t, r.sharing.current(), "the offer has ended")

	// A registry whose host names a revision that never comes goes on without it.
	lied := opened(t, shared.js, kv, func(c *Config[string, int]) { c.MaxLag = minMaxLag })
	answer = func() string { return "1000000" }
	_, p = lied.shareBeat("host")
	require.False(t, p)
	require.NoError(t, lied.Sync(ctx))
}

// A host that offers beats and answers nobody keeps no registry from proving its mirror
// current, nor from answering those that have asked it.
func testDeafHost(t *testing.T) {
	ctx := within(t)
	kv := bucket(t, shared.js)
	r := opened(t, shared.js, kv, func(c *Config[string, int]) { c.MaxLag = minMaxLag })
	sub, err := shared.js.Conn().SubscribeSync(sharePrefix + kv.Bucket() + ".deaf")
	require.NoError(t, err)
	defer func() { _ = sub.Unsubscribe() }()
	done := make(chan struct{})
	defer func() { <-done }()
	offering, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		defer close(done)
		for ; offering.Err() == nil; _ = push.Pause(offering, r.sharing.period/2) {
			_, _ = shared.js.PublishMsg(offering, &nats.Msg{Subject: r.prefix + syncPrefix + "99", Header: nats.Header{
				offerHeader: {fmt.Sprint("deaf ", r.sharing.period.Nanoseconds(), " ", r.sharing.created.Load())}}})
		}
	}()
	for range 2 {
		eventually(t, func() bool { n, _, _ := sub.Pending(); return n > 0 }, "it is asked")
		now := time.Since(r.begun)
		eventually(t, func() bool { return r.beater.proven.Load() > int64(now) }, "a beat of its own")
		m, err := shared.js.Conn().RequestWithContext(ctx, r.sharing.subject+r.sharing.name, nil)
		require.NoError(t, err)
		require.NotEmpty(t, m.Data)
	}
}

// hooked calls a function before it publishes a message, or after it has published a write.
type hooked struct {
	jetstream.JetStream
	before, after atomic.Pointer[func()]
}

func (h *hooked) PublishMsg(ctx context.Context, m *nats.Msg, opts ...jetstream.PublishOpt) (*jetstream.PubAck, error) {
	if f := h.before.Swap(nil); f != nil {
		(*f)()
	}
	ack, err := h.JetStream.PublishMsg(ctx, m, opts...)
	if m.Header.Get(nats.MsgIdHdr) != "" && err == nil {
		if f := h.after.Swap(nil); f != nil {
			(*f)()
		}
	}
	return ack, err
}

// A beat answers all requests that have come before it was sent, and no others.
func testRequests(t *testing.T) {
	ctx := within(t)
	kv := bucket(t, shared.js)
	js := &hooked{JetStream: shared.js}
	r := opened(t, js, kv, func(c *Config[string, int]) { patient(c); c.MaxLag = time.Minute }) // so that it does nothing by itself
	answers := make(chan uint64, 3)
	request := func() {
		m, err := shared.js.Conn().RequestWithContext(ctx, r.sharing.subject+r.sharing.name, nil)
		if err == nil {
			n, _ := strconv.ParseUint(string(m.Data), 10, 64)
			answers <- n
		}
	}
	waiting := func(n int) {
		eventually(t, func() bool {
			return len(r.sharing.requests) == n
		}, "requests")
	}
	beat := func() {
		r.beater.due.Store(true)
		r.beater.demand()
	}
	go request()
	go request()
	waiting(2)
	acknowledged, err := kv.PutString(ctx, "a", "1")
	require.NoError(t, err)
	require.NoError(t, r.Sync(ctx)) // which answers nobody
	waiting(2)
	sending := func() { go request(); waiting(1) } // the first two are taken
	js.before.Store(&sending)
	beat()
	first, second := <-answers, <-answers
	require.Equal(t, first, second)
	require.Greater(t, first, acknowledged)
	waiting(1)
	beat()
	require.Greater(t, <-answers, first)
}
