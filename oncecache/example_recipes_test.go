//go:build !modelcheck

package oncecache_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/latchfree/latchfree/oncecache"
)

// The keys of an issuer of tokens (JWKS) are fresh for five minutes. After that, the first call that
// uses them has them fetched in the background, and for a day all calls go on with the old ones,
// also while the issuer is down.
func Example_keySet() {
	const issuer, fresh, stale = "https://login.example.com/jwks", 5 * time.Minute, 24 * time.Hour
	down := false
	keys := oncecache.MustNew(oncecache.Config[string, []string]{
		TTL:        stale,
		RenewAhead: stale - fresh,
		Create: func(_ context.Context, url string) ([]string, error) {
			if down {
				return nil, errors.New("503 Service Unavailable")
			}
			fmt.Println("fetching", url)
			return []string{"key-1", "key-2"}, nil
		},
	})
	ctx := context.Background()
	isKnown := func(id string) bool {
		all, err := keys.Load(ctx, issuer)
		return err == nil && slices.Contains(all, id)
	}
	fmt.Println(isKnown("key-1"), isKnown("key-2"), isKnown("key-3"))

	down = true
	_, err := keys.Refresh(ctx, issuer, nil) // by hand: an operator knows of a new key
	fmt.Println(err)
	info, _ := keys.Info(issuer)
	fmt.Println(isKnown("key-1"), info.Expires.Sub(info.Created).Round(time.Second))
	// Output:
	// fetching https://login.example.com/jwks
	// true true false
	// 503 Service Unavailable
	// true 24h0m0s
}

// Each answer of a name server says how long it is good, and so does the answer that there is no
// such name. That the server did not answer is not kept.
func Example_nameServer() {
	type answer struct {
		addresses []string
		ttl       time.Duration
	}
	zone := map[string]answer{
		"www.example.com": {[]string{"192.0.2.1", "192.0.2.2"}, time.Hour},
		"now.example.com": {[]string{"192.0.2.3"}, 0}, // for those who ask now
	}
	names := oncecache.MustNew(oncecache.Config[string, answer]{
		MaxEntries: 10_000, // as outsiders choose the names
		TTLFunc:    func(_ string, a answer) time.Duration { return a.ttl },
		ErrorTTLFunc: func(_ string, err error) time.Duration {
			if e := new(net.DNSError); errors.As(err, &e) && e.IsNotFound {
				return time.Minute
			}
			return 0
		},
		Create: func(_ context.Context, name string) (answer, error) {
			fmt.Println("asking for", name)
			if a, ok := zone[name]; ok {
				return a, nil
			}
			return answer{}, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
		},
	})
	for _, name := range []string{"www.example.com", "now.example.com", "ww.example.com"} {
		for range 2 {
			a, err := names.Load(context.Background(), name)
			fmt.Println(a.addresses, err)
		}
	}
	// Output:
	// asking for www.example.com
	// [192.0.2.1 192.0.2.2] <nil>
	// [192.0.2.1 192.0.2.2] <nil>
	// asking for now.example.com
	// [192.0.2.3] <nil>
	// asking for now.example.com
	// [192.0.2.3] <nil>
	// asking for ww.example.com
	// [] lookup ww.example.com: no such host
	// [] lookup ww.example.com: no such host
}

// A session ends half an hour after its last use, and never during a request. What a request has
// changed is written back in Close, before the session is loaded again.
func Example_sessions() {
	type session struct {
		mu   sync.Mutex
		cart []string
	}
	var database sync.Map // of slices of strings
	sessions := oncecache.MustNew(oncecache.Config[string, *session]{
		IdleTimeout:       30 * time.Minute,
		CloseBeforeCreate: true,
		Create: func(_ context.Context, id string) (*session, error) {
			saved, _ := database.Load(id)
			cart, _ := saved.([]string)
			fmt.Println("loaded", id, cart)
			return &session{cart: cart}, nil
		},
		Close: func(id string, s *session) error {
			database.Store(id, s.cart)
			fmt.Println("saved", id, s.cart)
			return nil
		},
	})
	buy := func(id, what string) {
		lease, err := sessions.Acquire(context.Background(), id, nil)
		if err != nil {
			fmt.Println(err)
			return
		}
		defer lease.Release()
		s := lease.Value()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.cart = append(s.cart, what)
	}
	buy("mira", "tea")
	buy("mira", "milk")
	sessions.Delete("mira") // as half an hour without a request does
	buy("mira", "sugar")
	fmt.Println(sessions.Close(context.Background()))
	// Output:
	// loaded mira []
	// saved mira [tea milk]
	// loaded mira [tea milk]
	// saved mira [tea milk sugar]
	// <nil>
}

// Events keep a store up to date. A reader that comes before the event asks the server itself, and
// what it reads never takes the place of what an event has brought meanwhile.
func Example_informer() {
	type pod struct {
		name    string
		version int
	}
	var pods oncecache.Cache[string, pod]
	changed := func(p pod) { pods.Set(p.name, p) } // and all who wait for the server get p
	gone := func(name string) { pods.Delete(name) }

	changed(pod{"web-0", 7})
	for _, listed := range []pod{{"web-0", 5}, {"web-1", 5}} { // the list that the watch began with
		current, added := pods.SetIfAbsent(listed.name, listed)
		fmt.Println(current, added)
	}

	fmt.Println(pods.GetOrCreate("web-2", func() (pod, error) {
		read := pod{"web-2", 8}
		changed(pod{"web-2", 9}) // an event is faster than the answer
		return read, nil
	}))
	fmt.Println(pods.GetOrCreate("web-3", func() (pod, error) {
		read := pod{"web-3", 9}
		gone("web-3") // likewise: the answer is for this caller only
		return read, nil
	}))
	_, there := pods.Get("web-3")
	fmt.Println(there)

	// A reader that finds a pod gone removes the version that it has used, and no newer one.
	used, _ := pods.Get("web-0")
	changed(pod{"web-0", 10})
	fmt.Println(oncecache.CompareAndDelete(&pods, "web-0", used), pods.Len())
	// Output:
	// {web-0 7} false
	// {web-1 5} true
	// {web-2 9} <nil>
	// {web-3 9} <nil>
	// false
	// false 3
}

// With a time to live of zero nothing is kept: callers at the same time share one call, as with
// singleflight, and each may leave when its context ends.
func Example_singleflight() {
	type profile struct{ version int }
	profiles := oncecache.MustNew(oncecache.Config[string, profile]{
		TTLFunc: func(string, profile) time.Duration { return 0 },
	})
	var loads atomic.Int32
	load := func(ctx context.Context, user string) (profile, error) {
		return profile{int(loads.Add(1))}, nil // ask the database
	}
	ctx := context.Background()
	first, err := profiles.GetOrCreateContext(ctx, "ada", load)
	fmt.Println(first.version, err)
	second, err := profiles.GetOrCreateContext(ctx, "ada", load)
	fmt.Println(second.version, err)
	// Output:
	// 1 <nil>
	// 2 <nil>
}
