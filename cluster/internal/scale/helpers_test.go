// Package scale measures what cluster/SCALE.md says: servers, mirrors and
// clients share one process. All of it runs by
//
//	CLUSTER_LONG=1 go test -run '^$' -bench . -benchtime 1x -timeout 1h ./internal/scale
package scale

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/cluster/internal/natstest"
	"github.com/latchfree/latchfree/cluster/registry"
)

const patience = 5 * time.Minute

// value is what the keys hold: about 100 bytes as JSON.
type value struct {
	Owner, State, Note string
	N                  int
}

func some(n int) value {
	return value{Owner: "ada", State: "running", Note: "some text of about fifty bytes, as values have it", N: n}
}

func within(b *testing.B) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	b.Cleanup(cancel)
	return ctx
}

var buckets atomic.Int64

// bucket makes a bucket on files, replicated by all servers.
func bucket(b *testing.B, js jetstream.JetStream, servers int) jetstream.KeyValue {
	c := jetstream.KeyValueConfig{Bucket: fmt.Sprint("b", buckets.Add(1)), Replicas: servers, Storage: jetstream.FileStorage}
	kv, err := js.CreateKeyValue(within(b), c)
	require.NoError(b, err)
	b.Cleanup(func() { _ = js.DeleteKeyValue(within(b), c.Bucket) })
	return kv
}

// mirrors opens n registries of a bucket, each with a connection of its own.
func mirrors(b *testing.B, c *natstest.Cluster, kv jetstream.KeyValue, n int, config registry.Config[string, value]) []*registry.Registry[string, value] {
	var list []*registry.Registry[string, value]
	for range n {
		r, err := registry.Open(within(b), c.JetStream(quiet...), kv.Bucket(), config)
		require.NoError(b, err)
		b.Cleanup(func() { require.NoError(b, r.Close(within(b))) })
		list = append(list, r)
	}
	return list
}

// quiet are options of connections that send pings as rarely as those of a program do.
var quiet = []nats.Option{nats.PingInterval(2 * time.Minute)}

// heap returns how much memory is in use.
func heap() float64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc + m.StackInuse)
}

// until waits until f returns true.
func until(b *testing.B, f func() bool) {
	b.Helper()
	for end := time.Now().Add(patience); !f(); time.Sleep(100 * time.Microsecond) {
		if time.Now().After(end) {
			b.Fatal("does not happen")
		}
	}
}

// lastRevision returns the revision of another write to a bucket.
func lastRevision(b *testing.B, kv jetstream.KeyValue) registry.Version {
	v, err := kv.PutString(within(b), "last", "{}")
	require.NoError(b, err)
	return registry.Version(v)
}
