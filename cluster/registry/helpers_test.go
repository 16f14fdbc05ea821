package registry

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/cluster/internal/natstest"
)

// long says that tests may take minutes.
var long = natstest.Long()

const patience = 30 * time.Second

type plan struct {
	Owner string
	N     int
}

// within returns a context that ends long after everything should have happened.
func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// buckets is how many were made.
var buckets atomic.Int64

// bucket returns another bucket, which is deleted when the test ends.
func bucket(t testing.TB, js jetstream.JetStream, adapt ...func(*jetstream.KeyValueConfig)) jetstream.KeyValue {
	c := jetstream.KeyValueConfig{Bucket: fmt.Sprint(buckets.Add(1)) + strings.NewReplacer("/", "-", "=", "_", " ", "_").Replace(t.Name()), Storage: jetstream.MemoryStorage}
	for _, f := range adapt {
		f(&c)
	}
	kv, err := js.CreateKeyValue(within(t), c)
	require.NoError(t, err)
	t.Cleanup(func() { _ = js.DeleteKeyValue(within(t), c.Bucket) })
	return kv
}

// replicated makes a bucket one of three servers.
func replicated(k *jetstream.KeyValueConfig) { k.Replicas, k.Storage = 3, jetstream.FileStorage }

// opened returns a registry that mirrors kv until the test ends.
func opened[V any](t testing.TB, js jetstream.JetStream, kv jetstream.KeyValue, adapt ...func(*Config[string, V])) *Registry[string, V] {
	c := Config[string, V]{Heartbeat: minHeartbeat, Timeout: time.Second}
	for _, f := range adapt {
		f(&c)
	}
	r, err := Open(within(t), js, kv.Bucket(), c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close(within(t))) })
	return r
}

// patient makes a registry whose mirror takes no server for silent, and that sends no
// message again because the machine is busy.
func patient[V any](c *Config[string, V]) { c.Heartbeat, c.Timeout = patience, patience }

// inTime returns the error of a call that goes on until its context ends, which is after d,
// or later on a machine that is so busy that the error is not yet what it should be.
func inTime(d time.Duration, should func(error) bool, call func(ctx context.Context, d time.Duration) error) error {
	for ; ; d *= 2 {
		ctx, cancel := context.WithTimeout(context.Background(), d)
		err := call(ctx, d)
		cancel()
		if should(err) || d > patience {
			return err
		}
	}
}

// eventually waits until f returns true.
func eventually(t testing.TB, f func() bool, what string) {
	t.Helper()
	for end := time.Now().Add(patience); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("does not happen: %s", what)
		}
	}
}

// shared is the server that unit tests share.
var shared struct {
	cluster *natstest.Cluster
	js      jetstream.JetStream
}

// No goroutine of a registry is left when all tests have closed theirs.
func TestMain(m *testing.M) {
	code := m.Run()
	for end := time.Now().Add(patience); len(goroutines()) > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			fmt.Println("goroutines are left:", strings.Join(goroutines(), "\n\n"))
			os.Exit(1)
		}
	}
	os.Exit(code)
}

// goroutines returns the stacks of the goroutines of the package.
func goroutines() (list []string) {
	buf := make([]byte, 1<<20)
	buf = buf[:runtime.Stack(buf, true)]
	for _, g := range strings.Split(string(buf), "\n\n") {
		if strings.Contains(g, "cluster/registry.(*Registry") {
			list = append(list, g)
		}
	}
	return list
}

func key(i int) string { return fmt.Sprintf("plan/%03d", i) }
