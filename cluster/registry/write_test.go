package registry

import (
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
)

// stuck returns a registry that has written the key "a" five times, and whose mirror then waits in a
// function of the caller until goOn is called. Meanwhile the bucket was made anew.
func stuck(t *testing.T) (r *Registry[string, plan], kv jetstream.KeyValue, goOn func()) {
	ctx := within(t)
	kv = bucket(t, shared.js)
	at, on := make(chan struct{}), make(chan struct{})
	r = opened(t, shared.js, kv, func(c *Config[string, plan]) {
		c.OnForeign = func(Foreign) { close(at); <-on }
	})
	for i := range 5 {
		_, err := r.Put(ctx, "a", plan{N: i})
		require.NoError(t, err)
	}
	require.NoError(t, put(kv, "=1", "the mirror stops here"))
	<-at
	require.NoError(t, shared.js.DeleteKeyValue(ctx, kv.Bucket()))
	kv, err := shared.js.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: kv.Bucket(), Storage: jetstream.MemoryStorage})
	require.NoError(t, err)
	goOn = sync.OnceFunc(func() { close(on) })
	t.Cleanup(goOn)
	return r, kv, goOn
}

// Create does not overwrite a key of a bucket that was made anew, although the mirror, which has not
// noticed, has come to higher revisions and knows nothing of the key.
func testCreateInBucketMadeAnew(t *testing.T) {
	ctx := within(t)
	r, kv, goOn := stuck(t)
	rev, err := kv.PutString(ctx, "claim", `{"Owner":"another"}`)
	require.NoError(t, err)
	result := make(chan error, 1)
	go func() { _, err := r.Create(ctx, "claim", plan{Owner: "this"}); result <- err }()
	time.Sleep(50 * time.Millisecond)
	goOn()
	require.ErrorIs(t, <-result, ErrExists)
	e, err := kv.Get(ctx, "claim")
	require.NoError(t, err)
	require.Equal(t, rev, e.Revision())
}

// A write in a bucket that was made anew returns when the mirror shows it, and not because that shows a higher
// revision of the key.
func testPutInBucketMadeAnew(t *testing.T) {
	ctx := within(t)
	r, _, goOn := stuck(t)
	result := make(chan error, 1)
	go func() { _, err := r.Put(ctx, "a", plan{N: 9}); result <- err }()
	time.Sleep(50 * time.Millisecond)
	require.Empty(t, result, "the mirror does not show the value")
	goOn()
	require.NoError(t, <-result)
	p, _ := r.Get("a")
	require.Equal(t, 9, p.N)
}
