package registry

import (
	"encoding/json"
	"errors"
	"runtime"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
)

// rude is a codec whose Decode does what a value asks for.
type rude struct{ JSON[plan] }

func (c rude) Decode(b []byte) (plan, error) {
	switch string(b) {
	case "panic":
		panic("no")
	case "exit":
		runtime.Goexit()
	case "error":
		return plan{}, errors.New("no")
	}
	return c.JSON.Decode(b)
}

// foreigners collects what OnForeign is told.
type foreigners struct {
	mu   sync.Mutex
	list []Foreign
}

func (f *foreigners) told(x Foreign) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list = append(f.list, x)
}

func (f *foreigners) keys() (keys []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, x := range f.list {
		keys = append(keys, x.Key)
	}
	return keys
}

func testForeign(t *testing.T) {
	ctx := within(t)
	kv := bucket(t, shared.js)
	_, err := kv.PutString(ctx, "before", "error")
	require.NoError(t, err)
	var told foreigners
	r := opened(t, shared.js, kv, func(c *Config[string, plan]) {
		c.Codec = rude{}
		c.OnForeign = func(f Foreign) {
			told.told(f)
			switch len(told.keys()) {
			case 2:
				panic("OnForeign")
			case 3:
				runtime.Goexit()
			}
		}
		c.Indexes = map[string]func(string, plan) []string{"owner": func(_ string, p plan) []string {
			switch p.Owner {
			case "panic":
				panic("index")
			case "exit":
				runtime.Goexit()
			}
			return []string{p.Owner}
		}}
	})
	require.Equal(t, []string{"before"}, told.keys())
	bad := []string{"panic", "error", "exit", "not JSON", `{"Owner":"panic"}`, `{"Owner":"exit"}`, ""}
	for i, value := range bad {
		require.NoError(t, put(kv, key(i), value))
	}
	require.NoError(t, put(kv, "good", `{"Owner":"ada"}`))
	require.NoError(t, put(kv, "k=41", `{}`)) // which is no spelling of a key
	require.NoError(t, r.Sync(ctx))
	require.Equal(t, 1, r.Len())
	s := r.Stats()
	require.Equal(t, len(bad)+1, s.ForeignValues)
	require.Equal(t, 1, s.ForeignKeys)
	require.Len(t, told.keys(), len(bad)+2, "each is told once: %v", told.keys())

	for i := range bad {
		_, ok := r.Get(key(i))
		require.False(t, ok)
		_, err := r.Create(ctx, key(i), plan{})
		require.ErrorIs(t, err, ErrForeign)
		_, err = r.Update(ctx, key(i), func(p plan) (plan, error) { return p, nil })
		require.ErrorIs(t, err, ErrForeign)
		_, _, err = r.Delete(ctx, key(i))
		require.ErrorIs(t, err, ErrForeign)
		_, err = r.Put(ctx, key(i), plan{"ada", i})
		require.NoError(t, err)
		p, ok := r.Get(key(i))
		require.True(t, ok)
		require.Equal(t, i, p.N)
	}
	require.Equal(t, 1, r.Stats().ForeignValues)

	// A value that becomes foreign is no longer shown.
	require.NoError(t, put(kv, key(0), "panic"))
	require.NoError(t, r.Sync(ctx))
	_, ok := r.Get(key(0))
	require.False(t, ok)
	n := 0
	for range r.ByIndex("owner", "ada") {
		n++
	}
	require.Equal(t, len(bad), n)
	require.NoError(t, kv.Delete(ctx, "k=41"))
	require.NoError(t, kv.Purge(ctx, key(0)))
	require.NoError(t, r.Sync(ctx))
	require.Zero(t, r.Stats().ForeignKeys)
	_, err = r.Create(ctx, key(0), plan{})
	require.NoError(t, err)
}

// A foreign value without bytes, with a header that the client uses for what the server says
// of the consumer, is one nevertheless.
func testForeignStatus(t *testing.T) {
	ctx := within(t)
	kv := bucket(t, shared.js)
	r := opened(t, shared.js, kv, patient[plan])
	for _, status := range []string{"100", "409"} {
		_, err := shared.js.PublishMsg(ctx, &nats.Msg{Subject: r.prefix + "k" + status, Header: nats.Header{"Status": {status}}})
		require.NoError(t, err)
	}
	_, err := r.Create(ctx, "a", plan{N: 1})
	require.NoError(t, err)
	other := opened(t, shared.js, kv, patient[plan])
	require.Equal(t, 1, other.Len())
	for _, r := range []*Registry[string, plan]{r, other} {
		require.Equal(t, 2, r.Stats().ForeignValues)
		require.Equal(t, uint64(1), r.Stats().Attachments)
	}
	// When they are purged without a marker, nothing is left of them.
	s, err := shared.js.Stream(ctx, r.stream)
	require.NoError(t, err)
	require.NoError(t, s.Purge(ctx, jetstream.WithPurgeSubject(r.prefix+"*")))
	attachAgain(t, r)
	require.Zero(t, r.Stats().ForeignValues)
	deletions, _ := r.tombs.len()
	require.Equal(t, 1, deletions, "that of the key that was shown")
	_, err = r.Create(ctx, "k409", plan{N: 2})
	require.NoError(t, err)
}

// A value of the caller's that cannot be encoded is the caller's error.
func testEncode(t *testing.T) {
	ctx := within(t)
	kv := bucket(t, shared.js)
	r := opened[func()](t, shared.js, kv)
	_, err := r.Put(ctx, "a", func() {})
	var unsupported *json.UnsupportedTypeError
	require.ErrorAs(t, err, &unsupported)
	require.Zero(t, r.Len())
}
