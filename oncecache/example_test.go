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

type engine struct{ url string }

func Example() {
	var engines oncecache.Cache[string, *engine]
	open := func(url string) (*engine, error) {
		return engines.GetOrCreate(url, func() (*engine, error) {
			fmt.Println("opening", url)
			return &engine{url}, nil
		})
	}

	schema, _ := open("sqlite://:memory:")
	reports, _ := open("sqlite://:memory:")
	fmt.Println("one engine:", schema == reports)
	// Output:
	// opening sqlite://:memory:
	// one engine: true
}

func ExampleCache_GetOrCreate_error() {
	var engines oncecache.Cache[string, *engine]
	const url = "postgres://db-001"

	_, err := engines.GetOrCreate(url, func() (*engine, error) {
		return nil, errors.New("connection refused")
	})
	fmt.Println(err, engines.Len())

	e, err := engines.GetOrCreate(url, func() (*engine, error) {
		return &engine{url}, nil
	})
	fmt.Println(e.url, err, engines.Len())
	// Output:
	// connection refused 0
	// postgres://db-001 <nil> 1
}

// A caller that does not want to wait any longer leaves. The others get the value.
func ExampleCache_GetOrCreateContext() {
	var engines oncecache.Cache[string, *engine]
	const url = "postgres://db-001"
	begun, proceed := make(chan struct{}), make(chan struct{})
	open := func(ctx context.Context, url string) (*engine, error) {
		close(begun)
		<-proceed // a database that takes its time
		return &engine{url}, ctx.Err()
	}

	patient := make(chan *engine)
	go func() {
		e, _ := engines.GetOrCreateContext(context.Background(), url, open)
		patient <- e
	}()
	<-begun
	impatient, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := engines.GetOrCreateContext(impatient, url, open)
	fmt.Println(err)

	close(proceed)
	fmt.Println((<-patient).url)
	// Output:
	// context canceled
	// postgres://db-001
}

// A value with leases may be replaced while it is in use: it is closed when
// its last user releases it.
func ExampleCache_Acquire() {
	engines := oncecache.MustNew(oncecache.Config[string, *engine]{
		Close: func(_ string, e *engine) error {
			fmt.Println("closing", e.url)
			return nil
		},
	})
	open := func(_ context.Context, name string) (*engine, error) {
		return &engine{"postgres://db-001/" + name}, nil
	}
	ctx := context.Background()

	lease, err := engines.Acquire(ctx, "orders", open)
	if err != nil {
		fmt.Println(err)
		return
	}
	engines.Set("orders", &engine{"postgres://db-002/orders"})
	fmt.Println("using", lease.Value().url)
	lease.Release()
	fmt.Println("closed:", engines.Close(ctx))
	// Output:
	// using postgres://db-001/orders
	// closing postgres://db-001/orders
	// closing postgres://db-002/orders
	// closed: <nil>
}

// A database that one process may open once at a time is closed before it is
// opened again, though its user takes a while to release it.
func ExampleConfig_closeBeforeCreate() {
	databases := oncecache.MustNew(oncecache.Config[string, *engine]{
		CloseBeforeCreate: true,
		Close: func(_ string, e *engine) error {
			fmt.Println("closing", e.url)
			return nil
		},
	})
	open := func(_ context.Context, path string) (*engine, error) {
		fmt.Println("opening", path)
		return &engine{path}, nil
	}
	ctx := context.Background()

	lease, err := databases.Acquire(ctx, "orders.db", open)
	if err != nil {
		fmt.Println(err)
		return
	}
	databases.Delete("orders.db")
	impatient, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	_, err = databases.GetOrCreateContext(impatient, "orders.db", open)
	fmt.Println(err)

	lease.Release()
	e, err := databases.GetOrCreateContext(ctx, "orders.db", open)
	fmt.Println(e.url, err)
	// Output:
	// opening orders.db
	// context deadline exceeded
	// closing orders.db
	// opening orders.db
	// orders.db <nil>
}

// A page that has not changed is not made anew.
func ExampleCache_Refresh_notModified() {
	var pages oncecache.Cache[string, string]
	ctx := context.Background()
	changed := false
	fetch := func(_ context.Context, url, old string, exists bool) (string, error) {
		switch {
		case !exists:
			return "first edition", nil
		case !changed:
			return "", oncecache.ErrNotModified
		}
		return old + ", revised", nil
	}
	for range 2 {
		fmt.Println(pages.Refresh(ctx, "/index.html", fetch))
	}
	changed = true
	fmt.Println(pages.Refresh(ctx, "/index.html", fetch))
	// Output:
	// first edition <nil>
	// first edition <nil>
	// first edition, revised <nil>
}

func ExampleCache_Clear() {
	var engines oncecache.Cache[string, *engine]
	engines.Set("orders", &engine{"postgres://db-001"})
	engines.Set("users", &engine{"postgres://db-002"})
	fmt.Println(engines.Clear(), engines.Len())
	// Output: 2 0
}

// Many users of one value may find it broken. It is replaced once.
func ExampleLease_Discard() {
	var engines oncecache.Cache[string, *engine]
	opened := 0
	open := func(_ context.Context, url string) (*engine, error) {
		opened++
		return &engine{url}, nil
	}
	ctx := context.Background()

	first, _ := engines.Acquire(ctx, "postgres://db-001", open)
	second, _ := engines.Acquire(ctx, "postgres://db-001", open)
	first.Discard()
	third, _ := engines.Acquire(ctx, "postgres://db-001", open)
	second.Discard() // the one that is gone already
	fourth, _ := engines.Acquire(ctx, "postgres://db-001", open)
	fmt.Println(opened, third.Value() == fourth.Value())
	// Output: 2 true
}

func ExampleCache_Set() {
	var engines oncecache.Cache[string, *engine]
	engines.Set("orders", &engine{"postgres://db-001"})
	old, replaced := engines.Set("orders", &engine{"postgres://db-002"})
	fmt.Println(old.url, replaced)
	// Output: postgres://db-001 true
}

func ExampleCompareAndDelete() {
	var engines oncecache.Cache[string, *engine]
	broken := &engine{"postgres://db-001"}
	engines.Set("orders", broken)

	// Two users find the same engine broken. One of them removes it.
	fmt.Println(oncecache.CompareAndDelete(&engines, "orders", broken))
	engines.Set("orders", &engine{"postgres://db-001"})
	fmt.Println(oncecache.CompareAndDelete(&engines, "orders", broken))
	// Output:
	// true
	// false
}

func ExampleCache_Keys() {
	cache := oncecache.MustNew(oncecache.Config[string, int]{SizeHint: 100})
	cache.Set("one", 1)
	cache.Set("two", 2)
	fmt.Println(slices.Sorted(cache.Keys()))
	// Output: [one two]
}

func ExampleCache_All() {
	var prices oncecache.Cache[string, int]
	prices.Set("tea", 3)
	prices.Set("coffee", 4)
	total := 0
	for _, price := range prices.All() {
		total += price
	}
	fmt.Println(total)
	// Output: 7
}

func ExampleCache_Get() {
	var prices oncecache.Cache[string, int]
	prices.Set("tea", 3)
	fmt.Println(prices.Get("tea"))
	fmt.Println(prices.Get("coffee"))
	// Output:
	// 3 true
	// 0 false
}

func ExampleCache_SetIfAbsent() {
	var prices oncecache.Cache[string, int]
	fmt.Println(stored(prices.SetIfAbsent("tea", 3)), stored(prices.SetIfAbsent("tea", 4)))
	fmt.Println(prices.Get("tea"))
	// Output:
	// true false
	// 3 true
}

func ExampleCache_Delete() {
	var prices oncecache.Cache[string, int]
	prices.Set("tea", 3)
	fmt.Println(prices.Delete("tea"))
	fmt.Println(prices.Delete("tea"))
	// Output:
	// 3 true
	// 0 false
}

// The old value serves while the new one is made.
func ExampleCache_Refresh() {
	var prices oncecache.Cache[string, int]
	prices.Set("tea", 3)
	price, err := prices.Refresh(context.Background(), "tea", anew(func(_ context.Context, name string) (int, error) {
		old, _ := prices.Get(name)
		fmt.Println("meanwhile:", old)
		return 4, nil
	}))
	fmt.Println(price, err)
	// Output:
	// meanwhile: 3
	// 4 <nil>
}

// One call of the function loads all users that are not there. A user that it does
// not find is left out.
func ExampleCache_GetOrCreateMany() {
	var users oncecache.Cache[int, string]
	users.Set(1, "Ada")
	found, err := users.GetOrCreateMany(context.Background(), []int{1, 2, 3}, func(_ context.Context, ids []int) (map[int]string, error) {
		fmt.Println("loading", ids)
		return map[int]string{2: "Grace"}, nil
	})
	fmt.Println(found, err)
	// Output:
	// loading [2 3]
	// map[1:Ada 2:Grace] <nil>
}

// The value that has not been used makes room.
func ExampleConfig_maxEntries() {
	prices := oncecache.MustNew(oncecache.Config[string, int]{MaxEntries: 2})
	prices.Set("tea", 3)
	prices.Set("coffee", 4)
	prices.Get("tea")
	prices.Set("milk", 1)
	fmt.Println(slices.Sorted(prices.Keys()))
	// Output: [milk tea]
}

func ExampleCache_InFlight() {
	var engines oncecache.Cache[string, *engine]
	_, err := engines.GetOrCreate("orders", func() (*engine, error) {
		for flight := range engines.InFlight() {
			fmt.Println("under way:", flight.Key, "waiting:", flight.Waiting)
		}
		return &engine{"postgres://db-001"}, nil
	})
	fmt.Println(err)
	// Output:
	// under way: orders waiting: 0
	// <nil>
}

func ExampleCache_Stats() {
	var engines oncecache.Cache[string, *engine]
	engines.GetOrCreate("orders", func() (*engine, error) { return nil, errors.New("connection refused") })
	engines.GetOrCreate("orders", func() (*engine, error) { return &engine{"postgres://db-001"}, nil })
	s := engines.Stats()
	fmt.Println(s.Created, s.Failed)
	// Output: 1 1
}

// A listener learns of each value that leaves the cache, and why. It may use the cache.
func ExampleConfig_onRemove() {
	sessions := oncecache.MustNew(oncecache.Config[string, int]{
		MaxEntries: 2,
		Close:      func(string, int) error { return errors.New("connection reset") },
		OnRemove: func(user string, id int, why oncecache.Reason, err error) {
			fmt.Println(user, id, why, err)
		},
	})
	sessions.Set("mira", 1)
	sessions.Set("mira", 2)
	sessions.Delete("mira")
	// Output:
	// mira 1 Replaced connection reset
	// mira 2 Deleted connection reset
}

// What an exporter of metrics needs: counters from Stats, and a callback for a histogram.
func ExampleConfig_recordStats() {
	const url = "postgres://db-001"
	engines := oncecache.MustNew(oncecache.Config[string, *engine]{
		RecordStats: true,
		OnCreate: func(url string, took time.Duration, err error) {
			fmt.Println("created", url, took < time.Minute, err) // histogram.Observe(took.Seconds())
		},
	})
	for range 3 {
		engines.GetOrCreate(url, func() (*engine, error) { return &engine{url}, nil })
	}
	s := engines.Stats()
	fmt.Println(s.Hits, "hits,", s.Misses, "miss,", s.Created, "created")
	// Output:
	// created postgres://db-001 true <nil>
	// 2 hits, 1 miss, 1 created
}

// Pages of up to 1 MiB together. A larger one is served, and not kept.
func ExampleConfig_maxWeight() {
	pages := oncecache.MustNew(oncecache.Config[string, []byte]{
		MaxWeight: 1 << 20,
		Weight:    func(path string, page []byte) int64 { return int64(len(path) + len(page)) },
	})
	pages.Set("/plans", make([]byte, 700<<10))
	pages.Set("/users", make([]byte, 200<<10))
	pages.Set("/report", make([]byte, 300<<10)) // "/plans" makes room
	pages.GetOrCreate("/export", func() ([]byte, error) { return make([]byte, 2<<20), nil })
	fmt.Println(slices.Sorted(pages.Keys()), pages.Stats().Weight>>10, "KiB")
	// Output:
	// [/report /users] 500 KiB
}

func ExampleNew() {
	_, err := oncecache.New(oncecache.Config[string, *engine]{MaxEntries: -1})
	fmt.Println(err)
	// Output: oncecache: Config.MaxEntries -1: must not be negative
}

// A server that is down is asked once, until the key is deleted.
func ExampleConfig_errorTTL() {
	engines := oncecache.MustNew(oncecache.Config[string, *engine]{
		ErrorTTLFunc: func(string, error) time.Duration { return -1 },
	})
	dial := func() (*engine, error) {
		fmt.Println("dialling")
		return nil, errors.New("connection refused")
	}
	for range 2 {
		_, err := engines.GetOrCreate("orders", dial)
		fmt.Println(err)
	}
	engines.Delete("orders")
	_, err := engines.GetOrCreate("orders", dial)
	fmt.Println(err)
	// Output:
	// dialling
	// connection refused
	// connection refused
	// dialling
	// connection refused
}

// Each of two functions asks for the key of the other. The call that closes the circle
// gets an error with the way.
func ExampleCycleError() {
	var modules oncecache.Cache[string, string]
	imports := map[string]string{"a": "b", "b": "a"}
	var load func(ctx context.Context, name string) (string, error)
	load = func(ctx context.Context, name string) (string, error) {
		return modules.GetOrCreateContext(ctx, imports[name], load)
	}
	_, err := modules.GetOrCreateContext(context.Background(), "a", load)
	var cycle *oncecache.CycleError
	if errors.As(err, &cycle) {
		fmt.Println(cycle.Path)
	}
	// Output: [b a b]
}

// A function may have an error for each key, beside the values.
func ExampleKeyErrors() {
	var users oncecache.Cache[int, string]
	found, err := users.GetOrCreateMany(context.Background(), []int{1, 2}, func(context.Context, []int) (map[int]string, error) {
		return map[int]string{1: "Ada"}, oncecache.KeyErrors[int]{2: errors.New("suspended")}
	})
	fmt.Println(found, err)
	// Output: map[1:Ada] 2: suspended
}

// Close says what it has not waited for, and waits for it the next time.
func ExampleCache_Close() {
	engines := oncecache.MustNew(oncecache.Config[string, *engine]{
		Close: func(_ string, e *engine) error {
			fmt.Println("closing", e.url)
			return nil
		},
	})
	lease, err := engines.Acquire(context.Background(), "orders", func(context.Context, string) (*engine, error) {
		return &engine{"postgres://db-001"}, nil
	})
	if err != nil {
		fmt.Println(err)
		return
	}

	impatient, cancel := context.WithCancel(context.Background())
	cancel()
	var pending *oncecache.PendingError
	if errors.As(engines.Close(impatient), &pending) {
		fmt.Println("leased:", pending.Leased)
	}
	lease.Release()
	fmt.Println("closed:", engines.Close(context.Background()))
	// Output:
	// leased: [orders]
	// closing postgres://db-001
	// closed: <nil>
}

// Wait creates nothing.
func ExampleCache_Wait() {
	var prices oncecache.Cache[string, int]
	_, err := prices.Wait(context.Background(), "tea")
	fmt.Println(errors.Is(err, oncecache.ErrNotFound))
	prices.Set("tea", 3)
	fmt.Println(prices.Wait(context.Background(), "tea"))
	// Output:
	// true
	// 3 <nil>
}

// A token is kept until shortly before it expires by itself.
func ExampleConfig_tTL() {
	type token struct {
		secret  string
		expires time.Time
	}
	tokens := oncecache.MustNew(oncecache.Config[string, *token]{
		TTLFunc: func(_ string, t *token) time.Duration { return time.Until(t.expires) - time.Minute },
	})
	fetch := func(lasts time.Duration) func() (*token, error) {
		return func() (*token, error) { return &token{"s3cret", time.Now().Add(lasts)}, nil }
	}
	tokens.GetOrCreate("long", fetch(time.Hour))
	tokens.GetOrCreate("short", fetch(time.Second)) // too short to be kept
	_, long := tokens.Get("long")
	_, short := tokens.Get("short")
	fmt.Println(long, short)
	// Output: true false
}

// Prices are fresh for a minute. For one minute more callers get the old price at once while one
// call of Renew asks for the new one, and also while the source is down.
func ExampleConfig_renew() {
	prices := oncecache.MustNew(oncecache.Config[string, int]{
		TTLFunc:    func(string, int) time.Duration { return 2 * time.Minute },
		TTLJitter:  0.1,
		RenewAhead: time.Minute,
		Renew: func(ctx context.Context, product string, old int) (int, error) {
			return old + 1, nil // ask the source
		},
	})
	price, err := prices.GetOrCreate("tea", func() (int, error) { return 320, nil })
	fmt.Println(price, err)
	// Output: 320 <nil>
}

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
	zone := map[string]*answer{
		"www.example.com": {[]string{"192.0.2.1", "192.0.2.2"}, time.Hour},
		"now.example.com": {[]string{"192.0.2.3"}, 0}, // for those who ask now
	}
	names := oncecache.MustNew(oncecache.Config[string, *answer]{
		MaxEntries: 10_000, // as outsiders choose the names
		TTLFunc:    func(_ string, a *answer) time.Duration { return a.ttl },
		ErrorTTLFunc: func(_ string, err error) time.Duration {
			if e := new(net.DNSError); errors.As(err, &e) && e.IsNotFound {
				return time.Minute
			}
			return 0
		},
		Create: func(_ context.Context, name string) (*answer, error) {
			fmt.Println("asking for", name)
			if a, ok := zone[name]; ok {
				return a, nil
			}
			return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
		},
	})
	for _, name := range []string{"www.example.com", "now.example.com", "ww.example.com"} {
		for range 2 {
			if a, err := names.Load(context.Background(), name); err == nil {
				fmt.Println(a.addresses)
			} else {
				fmt.Println(err)
			}
		}
	}
	// Output:
	// asking for www.example.com
	// [192.0.2.1 192.0.2.2]
	// [192.0.2.1 192.0.2.2]
	// asking for now.example.com
	// [192.0.2.3]
	// asking for now.example.com
	// [192.0.2.3]
	// asking for ww.example.com
	// lookup ww.example.com: no such host
	// lookup ww.example.com: no such host
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
	profiles := oncecache.MustNew(oncecache.Config[string, *profile]{
		TTLFunc: func(string, *profile) time.Duration { return 0 },
	})
	var loads atomic.Int32
	load := func(ctx context.Context, user string) (*profile, error) {
		return &profile{int(loads.Add(1))}, nil // ask the database
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

// Counters are changed in the cache, and written back when they leave it: by Close, so that the next
// creation of a key, which reads what was written, begins after that.
func ExampleConfig_close() {
	type counter struct {
		sync.Mutex
		n int
	}
	var store sync.Map // of the counts by page
	counters := oncecache.MustNew(oncecache.Config[string, *counter]{
		MaxEntries:        1,
		CloseBeforeCreate: true,
		Close: func(page string, c *counter) error {
			store.Store(page, c.n) // no lease holds it: nobody else has it
			return nil
		},
	})
	load := func(_ context.Context, page string) (*counter, error) {
		n, _ := store.LoadOrStore(page, 0)
		return &counter{n: n.(int)}, nil
	}
	view := func(page string) error {
		lease, err := counters.Acquire(context.Background(), page, load)
		if err != nil {
			return err
		}
		defer lease.Release() // not written before
		c := lease.Value()
		c.Lock()
		defer c.Unlock()
		c.n++
		return nil
	}
	for _, page := range []string{"home", "news", "home", "news", "home"} {
		if err := view(page); err != nil {
			fmt.Println(err)
		}
	}
	err := counters.Close(context.Background())
	home, _ := store.Load("home")
	news, _ := store.Load("news")
	fmt.Println(home, news, err)
	// Output: 3 2 <nil>
}
