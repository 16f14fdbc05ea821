package registry

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/shardedregistry"
)

func testWatch(t *testing.T) {
	ctx := within(t)
	kv := bucket(t, shared.js)
	r := opened[plan](t, shared.js, kv)
	other := opened[plan](t, shared.js, kv)
	v, err := other.Create(ctx, "a", plan{N: 1})
	require.NoError(t, err)
	require.NoError(t, r.Sync(ctx))
	events := make(chan Event[string, plan])
	begun := make(chan int)
	loop, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		defer close(events)
		for s, e := range r.WatchSnapshot(loop, shardedregistry.Prefix("a")) {
			if s != nil {
				begun <- s.Len()
			} else {
				events <- e
			}
		}
	}()
	require.Equal(t, 1, <-begun)
	v2, err := other.Put(ctx, "a", plan{N: 2})
	require.NoError(t, err)
	_, err = other.Put(ctx, "b", plan{})
	require.NoError(t, err)
	require.Equal(t, Event[string, plan]{Key: "a", Value: plan{N: 2}, Version: v2}, <-events)
	require.Greater(t, v2, v)
	_, _, err = other.Delete(ctx, "a")
	require.NoError(t, err)
	e := <-events
	require.True(t, e.Deleted && !e.Expired && e.Version > v2, e)
	v3, err := other.Create(ctx, "a", plan{N: 3})
	require.NoError(t, err)
	e = <-events
	require.Equal(t, v3, e.Version)
	cancel()
	for range events {
	}

	s := r.Snapshot()
	require.Equal(t, 2, s.Len())
	got, ok := s.Lookup("a")
	require.True(t, ok)
	require.Equal(t, v3, got.Version)
	p, ok := s.Get("a")
	require.True(t, ok)
	require.Equal(t, 3, p.N)
	_, ok = s.Get("c")
	require.False(t, ok)
	_, ok = s.Lookup("c")
	require.False(t, ok)
	n := 0
	for range s.All() {
		n++
	}
	require.Equal(t, 2, n)
	_, err = r.Wait(ctx, "c", v3)
	require.ErrorIs(t, err, ErrNotFound)
	short, cancel2 := context.WithTimeout(ctx, time.Millisecond)
	defer cancel2()
	_, err = r.Wait(short, "a", v3)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

// Work is claimed by a key that expires.
func testClaims(t *testing.T) {
	ctx := within(t)
	kv := bucket(t, shared.js, func(c *jetstream.KeyValueConfig) { c.LimitMarkerTTL = time.Second })
	r := opened[plan](t, shared.js, kv)
	other := opened[plan](t, shared.js, kv)
	v, err := r.Create(ctx, "job", plan{Owner: "r"}, TTL(time.Minute))
	require.NoError(t, err)
	_, err = other.Create(ctx, "job", plan{Owner: "other"}, TTL(time.Minute))
	require.ErrorIs(t, err, ErrExists)
	v2, err := r.Renew(ctx, "job", v, time.Minute)
	require.NoError(t, err)
	_, err = r.Renew(ctx, "job", v, time.Minute)
	require.ErrorIs(t, err, ErrConflict)
	v2, err = r.Renew(ctx, "job", v2, time.Second)
	require.NoError(t, err)
	var expired Event[string, plan]
	for e := range other.Watch(ctx, shardedregistry.Keys("job")) {
		if expired = e; e.Deleted {
			break
		}
	}
	require.True(t, expired.Expired)
	require.Greater(t, expired.Version, v2)
	ttl := time.Minute
	if long {
		ttl = time.Second
	}
	v3, err := other.Create(ctx, "job", plan{Owner: "other"}, TTL(ttl))
	require.NoError(t, err)
	require.Greater(t, v3, expired.Version)
	_, err = r.Renew(ctx, "job", v2, time.Second)
	require.ErrorIs(t, err, ErrConflict)
	if long { // the marker expires, too, and nobody is told
		_, err := other.Wait(ctx, "job", v3)
		require.ErrorIs(t, err, ErrNotFound)
		time.Sleep(3 * time.Second)
		_, err = kv.Get(ctx, "job")
		require.ErrorIs(t, err, jetstream.ErrKeyNotFound)
		_, err = r.Create(ctx, "job", plan{})
		require.NoError(t, err)
	}

	for _, d := range []time.Duration{-1, 0, time.Millisecond, 1500 * time.Millisecond} {
		_, err = r.Put(ctx, "x", plan{}, TTL(d))
		require.ErrorContains(t, err, "TTL")
	}
	_, err = r.Renew(ctx, "job", v3, 0)
	require.ErrorContains(t, err, "TTL")
	plain := opened[plan](t, shared.js, bucket(t, shared.js))
	_, err = plain.Create(ctx, "job", plan{}, TTL(time.Second))
	require.ErrorIs(t, err, ErrNoTTL)
	deep := opened[plan](t, shared.js, bucket(t, shared.js, func(c *jetstream.KeyValueConfig) { c.LimitMarkerTTL, c.History = time.Second, 2 }))
	_, err = deep.Create(ctx, "job", plan{}, TTL(time.Second))
	require.ErrorIs(t, err, ErrNoTTL)
}

// An Update leaves a key the time to live that it has left, whoever makes it, and however often; another
// one, or none, if it is told so.
func testUpdateKeepsTTL(t *testing.T) {
	ctx := within(t)
	kv := bucket(t, shared.js, func(c *jetstream.KeyValueConfig) { c.LimitMarkerTTL = time.Minute })
	r := opened[plan](t, shared.js, kv)
	s, err := shared.js.Stream(ctx, r.stream)
	require.NoError(t, err)
	ttl := func(key string) (left time.Duration) {
		m, err := s.GetLastMsgForSubject(ctx, r.prefix+key)
		require.NoError(t, err)
		if text := m.Header.Get(jetstream.MsgTTLHeader); text != "" {
			left, err = time.ParseDuration(text)
			require.NoError(t, err)
		}
		return left
	}
	progress := func(p plan) (plan, error) { p.N++; return p, nil }
	began := time.Now()
	_, err = r.Create(ctx, "long", plan{}, TTL(time.Hour))
	require.NoError(t, err)
	_, err = r.Create(ctx, "short", plan{}, TTL(2*time.Second))
	require.NoError(t, err)
	other := opened[plan](t, shared.js, kv) // which has listed them
	for range 20 {
		for _, r := range []*Registry[string, plan]{r, other} {
			_, err := r.Update(ctx, "short", progress)
			require.NoError(t, err)
			_, err = r.Update(ctx, "long", progress)
			require.NoError(t, err)
			left := ttl("long")
			require.LessOrEqual(t, left, time.Hour+time.Second) // rounded up, by a clock that may be a little late
			require.GreaterOrEqual(t, left, time.Hour-time.Since(began)-time.Second)
		}
		time.Sleep(20 * time.Millisecond)
	}
	require.LessOrEqual(t, ttl("short"), 2*time.Second)
	time.Sleep(time.Until(began.Add(1100 * time.Millisecond)))
	e, err := r.Update(ctx, "short", progress)
	require.NoError(t, err)
	require.Equal(t, time.Second, ttl("short"), "the 900 ms that were left")
	require.Equal(t, 41, e.Value.N)
	_, err = other.Wait(ctx, "short", e.Version)
	require.ErrorIs(t, err, ErrNotFound)

	_, err = r.Update(ctx, "long", progress, TTL(2*time.Hour))
	require.NoError(t, err)
	require.Equal(t, 2*time.Hour, ttl("long"))
	_, err = r.Update(ctx, "long", progress)
	require.NoError(t, err)
	require.Greater(t, ttl("long"), time.Hour)
	known, _ := r.Lookup("long")
	_, err = r.UpdateIf(ctx, "long", known.Version, known.Value)
	require.NoError(t, err)
	require.Zero(t, ttl("long"))
	_, err = r.Update(ctx, "long", progress)
	require.NoError(t, err)
	require.Zero(t, ttl("long"))
}

// An owner that notes its progress all the time cannot put off the end of its claim: after the second to which that
// is rounded up, the key is gone.
func testUpdatesEnd(t *testing.T) {
	ctx := within(t)
	r := opened[plan](t, shared.js, bucket(t, shared.js, func(c *jetstream.KeyValueConfig) { c.LimitMarkerTTL = time.Minute }))
	began := time.Now()
	_, err := r.Create(ctx, "claim", plan{}, TTL(time.Second))
	require.NoError(t, err)
	for err == nil {
		_, err = r.Update(ctx, "claim", func(p plan) (plan, error) { p.N++; return p, nil })
		require.Less(t, time.Since(began), 10*time.Second)
		time.Sleep(50 * time.Millisecond)
	}
	require.ErrorIs(t, err, ErrNotFound)
}

// What is known of when keys expire goes with them, also with those that have foreign values.
func testEndsAreForgotten(t *testing.T) {
	ctx := within(t)
	kv := bucket(t, shared.js, func(c *jetstream.KeyValueConfig) { c.LimitMarkerTTL = time.Minute })
	r := opened[plan](t, shared.js, kv)
	ends := func() (n int) {
		r.ends.Range(func(any, any) bool { n++; return true })
		return n
	}
	for i := range 10 {
		_, err := r.Create(ctx, key(i), plan{}, TTL(time.Second))
		require.NoError(t, err)
	}
	_, err := kv.Create(ctx, "foreign", []byte("no JSON"), jetstream.KeyTTL(time.Hour))
	require.NoError(t, err)
	require.NoError(t, kv.Purge(ctx, "purged", jetstream.PurgeTTL(time.Hour)))
	require.NoError(t, r.Sync(ctx))
	require.Equal(t, 10, ends())
	eventually(t, func() bool { return r.Len() == 0 }, "all have expired")
	require.NoError(t, r.Sync(ctx))
	require.Zero(t, ends())
}

// A key that no bucket can have is invalid, whatever the caller knows of it.
func testWaitInvalid(t *testing.T) {
	ctx := within(t)
	r := opened(t, shared.js, bucket(t, shared.js), func(c *Config[string, plan]) { c.Normalize = lower })
	for _, since := range []Version{0, 1} {
		for _, key := range []string{" ", strings.Repeat("x", maxKey+1)} {
			_, err := r.Wait(ctx, key, since)
			require.ErrorIs(t, err, ErrInvalidKey)
		}
	}
}

// Callers of Wait whose version cannot be proved learn that the registry has ended.
func testWaitClosed(t *testing.T) {
	ctx := within(t)
	kv := bucket(t, shared.js)
	at, on := make(chan string), make(chan struct{})
	r := opened(t, shared.js, kv, func(c *Config[string, plan]) {
		c.OnForeign = func(f Foreign) { at <- f.Key; <-on }
	})
	known, err := r.Create(ctx, "plan", plan{})
	require.NoError(t, err)
	require.NoError(t, put(kv, "=1", "the mirror stops here, and proves nothing"))
	<-at
	ended := make(chan error)
	for range 200 {
		go func() {
			_, err := r.Wait(ctx, "plan", known+1000)
			ended <- err
		}()
	}
	eventually(t, func() bool {
		n := 0
		for _, stack := range goroutines() {
			if strings.Contains(stack, ".Sync(") {
				n++
			}
		}
		return n >= 200
	}, "all wait")
	go r.Close(ctx)
	for range 200 {
		if err := <-ended; !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
	}
	close(on)
}

// A bucket that was made anew has lower revisions, of which a caller of Wait knows nothing:
// what key holds is something else all the same, also for a call that begins later. A mirror that is only
// behind shows the caller nothing older than it knows.
func testWaitInBucketMadeAnew(t *testing.T) {
	ctx := within(t)
	kv := bucket(t, shared.js)
	at, on := make(chan string), make(chan struct{})
	r := opened(t, shared.js, kv, func(c *Config[string, plan]) {
		c.OnForeign = func(f Foreign) { at <- f.Key; <-on }
	})
	var known Version
	for range 10 {
		var err error
		known, err = r.Put(ctx, "plan", plan{Owner: "old"})
		require.NoError(t, err)
	}
	type result struct {
		e   Entry[string, plan]
		err error
	}
	wait := func(since Version) chan result {
		woken := make(chan result, 1)
		go func() {
			e, err := r.Wait(ctx, "plan", since)
			woken <- result{e, err}
		}()
		return woken
	}
	behind := func() { // what the mirror shows, of what it will be told later
		require.NoError(t, put(kv, "=1", "the mirror stops here"))
		require.Equal(t, "=1", <-at)
	}
	behind()
	later, err := kv.PutString(ctx, "plan", `{"Owner":"later"}`)
	require.NoError(t, err)
	woken := wait(Version(later))
	select {
	case got := <-woken:
		t.Fatalf("woken by %+v, and knows version %d", got, later)
	case <-time.After(50 * time.Millisecond): // it may come too late to see a fault, never too early
	}
	on <- struct{}{}
	require.NoError(t, r.Sync(ctx))
	require.Empty(t, woken)

	require.NoError(t, shared.js.DeleteKeyValue(ctx, kv.Bucket()))
	kv, err = shared.js.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: kv.Bucket(), Storage: jetstream.MemoryStorage})
	require.NoError(t, err)
	require.NoError(t, put(kv, "plan", `{"Owner":"backup"}`))
	for _, got := range []result{<-woken, <-wait(known)} {
		require.NoError(t, got.err)
		require.Equal(t, "backup", got.e.Value.Owner)
		require.Less(t, got.e.Version, known)
	}

	known, err = r.Put(ctx, "plan", plan{Owner: "old"}) // which another bucket gives the same revision
	require.NoError(t, err)
	woken = wait(known)
	behind()
	require.NoError(t, shared.js.DeleteKeyValue(ctx, kv.Bucket()))
	kv, err = shared.js.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: kv.Bucket(), Storage: jetstream.MemoryStorage})
	require.NoError(t, err)
	for revision := Version(0); revision < known; revision++ {
		require.NoError(t, put(kv, "plan", `{"Owner":"again"}`))
	}
	on <- struct{}{}
	got := <-woken
	require.NoError(t, got.err)
	require.Equal(t, Entry[string, plan]{Key: "plan", Value: plan{Owner: "again"}, Version: known}, got.e)
}
