package breaker_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/cluster/breaker"
)

const patience = 30 * time.Second

var errDown = errors.New("down")

// replica is a group of one replica, and what it was told of.
type replica struct {
	*breaker.Group[string]
	mu     sync.Mutex
	events []atomicbreaker.Event
	errs   []error
}

// start returns the group of a new replica, which has heard all there is.
func start(t *testing.T, js jetstream.JetStream, name string, adapt ...func(*breaker.Config[string])) *replica {
	t.Helper()
	r := launch(t, js, name, adapt...)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.NoError(t, r.Wait(ctx))
	return r
}

// launch is start without the wait.
func launch(t *testing.T, js jetstream.JetStream, name string, adapt ...func(*breaker.Config[string])) *replica {
	t.Helper()
	r := new(replica)
	c := breaker.Config[string]{
		Stream: "hints",
		Group: atomicbreaker.GroupConfig[string]{
			Default: atomicbreaker.Config{Policy: atomicbreaker.Consecutive(4), OpenTimeout: time.Minute},
			OnStateChange: func(_ string, e atomicbreaker.Event) {
				r.mu.Lock()
				defer r.mu.Unlock()
				r.events = append(r.events, e)
			},
		},
		OnError: func(err error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.errs = append(r.errs, err)
		},
	}
	for _, f := range adapt {
		f(&c)
	}
	g, err := breaker.NewGroup(js, c)
	require.NoError(t, err)
	r.Group = g
	t.Cleanup(g.Close)
	return r
}

func (r *replica) fail(k string, times int) {
	for range times {
		r.Do(context.Background(), k, func(context.Context) error { return errDown })
	}
}

func (r *replica) succeed(t *testing.T, k string) {
	t.Helper()
	require.NoError(t, r.Do(t.Context(), k, func(context.Context) error { return nil }))
}

// hears waits until the replica has met n messages of the stream.
func (r *replica) hears(t *testing.T, n int64) {
	t.Helper()
	eventually(t, func() bool { return r.Hints().Heard >= n })
}

func (r *replica) becomes(t *testing.T, k string, s atomicbreaker.State) {
	t.Helper()
	require.Eventually(t, func() bool { return r.State(k) == s }, patience, 2*time.Millisecond, "%v, want %v", r.State(k), s)
}

func (r *replica) reasons() (reasons []atomicbreaker.Reason) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.events {
		reasons = append(reasons, e.Reason)
	}
	return reasons
}

func (r *replica) errors() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return errors.Join(r.errs...)
}

func eventually(t *testing.T, holds func() bool) {
	t.Helper()
	require.Eventually(t, holds, patience, 2*time.Millisecond)
}

// goroutines returns the stacks of those that run code of the package, but for its tests.
func goroutines() (stacks []string) {
	all := make([]byte, 1<<20)
	all = all[:runtime.Stack(all, true)]
	for _, stack := range strings.Split(string(all), "\n\n") {
		if strings.Contains(stack, "cluster/breaker.(*") {
			stacks = append(stacks, stack)
		}
	}
	return stacks
}
