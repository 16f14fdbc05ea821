// Package cluster_test has the table "What they promise" of README.md as tests: a row for
// each state of the engine, a cell for each package.
package cluster_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/cluster/breaker"
	"github.com/latchfree/latchfree/cluster/changeset"
	"github.com/latchfree/latchfree/cluster/internal/natstest"
	"github.com/latchfree/latchfree/cluster/registry"
)

// cell checks what a package promises while the engine is in a state. The function that it
// returns checks the rest when the engine is well again.
type cell func(t *testing.T, e *engine) (back func(t *testing.T))

// row is a state of the engine.
type row struct {
	servers                      int
	enter, leave                 func(e *engine)
	registry, changeset, breaker cell
}

var promises = map[string]row{
	"well":           {1, nothing, nothing, registryWell, changesetWell, breakerWell},
	"slow":           {1, slow, fast, registrySlow, changesetSlow, breakerSlow},
	"without leader": {3, killTwo, restartTwo, registryLeaderless, changesetLeaderless, breakerLeaderless},
	"cut off":        {3, cutOff, heal, registryCutOff, changesetCutOff, breakerCutOff},
	"down":           {1, kill, restart, registryDown, changesetDown, breakerDown},
	"restored":       {1, restore, nothing, registryRestored, changesetRestored, breakerRestored},
}

func TestPromises(t *testing.T) {
	for state, row := range promises {
		t.Run("the engine is "+state, func(t *testing.T) {
			t.Parallel()
			if state == "without leader" {
				natstest.NeedsLong(t, "elections take some seconds")
			}
			e := start(t, row.servers)
			row.enter(e)
			cells := map[string]cell{"registry": row.registry, "changeset": row.changeset, "breaker": row.breaker}
			back := make(map[string]func(*testing.T))
			for name, check := range cells {
				t.Run(name, func(t *testing.T) { back[name] = check(t, e) })
			}
			row.leave(e)
			for name, check := range back {
				if check != nil {
					t.Run(name+" when it is well again", check)
				}
			}
		})
	}
}

// engine is the servers, and two replicas of a service: near is connected to the first
// server only, far to the second, if there are more than one.
type engine struct {
	t         *testing.T
	servers   *natstest.Cluster
	dir       string
	near, far *replica
}

// replica is what a replica of a service has of the three packages.
type replica struct {
	js    jetstream.JetStream
	plans *registry.Registry[string, int]
	trail *changeset.Store[string]
	calls *breaker.Group[string]
}

// start starts servers and replicas. The registry has a key "before", near has the trail,
// with a changeset "a" of an entry "before", and the key "before" is forced open.
func start(t *testing.T, servers int) *engine {
	e := &engine{t: t, dir: t.TempDir()}
	e.servers = natstest.Start(t, servers, func(o *server.Options) {
		if servers == 1 {
			o.StoreDir = e.dir
		}
	})
	js := e.servers.JetStream()
	_, err := js.CreateKeyValue(within(t), jetstream.KeyValueConfig{Bucket: "plans", Replicas: servers})
	require.NoError(t, err)
	_, err = js.CreateStream(within(t), changeset.StreamConfig("TRAIL", servers))
	require.NoError(t, err)
	e.near, e.far = e.replica(0), e.replica(min(1, servers-1))
	_, err = e.near.plans.Put(within(t), "before", 1)
	require.NoError(t, err)
	require.NoError(t, e.near.trail.Claim(within(t)))
	require.NoError(t, e.near.trail.Start(within(t), header{ID: "a", Ordinal: 1}))
	require.NoError(t, e.near.trail.Append(within(t), "a", []entry{{Seq: 0, Value: "before"}}))
	e.near.calls.ForceOpen("before")
	becomes(t, e.far.calls, "before", atomicbreaker.ForcedOpen)
	require.NoError(t, e.far.plans.Sync(within(t)))
	return e
}

// replica starts a replica that is connected to server i.
func (e *engine) replica(i int) *replica {
	t := e.t
	js, err := jetstream.New(e.servers.ConnectTo(i))
	require.NoError(t, err)
	r := &replica{js: js}
	r.plans, err = registry.Open(within(t), js, "plans", registry.Config[string, int]{Heartbeat: 100 * time.Millisecond, Timeout: 500 * time.Millisecond})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.plans.Close(within(t))) })
	r.trail, err = changeset.Open(within(t), js, changeset.Options[string]{Stream: "TRAIL", AckWait: 500 * time.Millisecond})
	require.NoError(t, err)
	r.calls = e.group(js)
	require.NoError(t, r.calls.Wait(within(t)))
	return r
}

// group starts another replica of the breakers.
func (e *engine) group(js jetstream.JetStream) *breaker.Group[string] {
	g, err := breaker.NewGroup(js, breaker.Config[string]{
		Stream: "hints", StreamReplicas: e.servers.Len(),
		Group: atomicbreaker.GroupConfig[string]{Default: atomicbreaker.Config{Policy: atomicbreaker.Consecutive(3), OpenTimeout: time.Minute}},
	})
	require.NoError(e.t, err)
	e.t.Cleanup(g.Close)
	return g
}

// The states of the engine.

func nothing(*engine) {}

const delay = 20 * time.Millisecond

func slow(e *engine) { e.servers.SlowClients(0, delay) }

func fast(e *engine) { e.servers.SlowClients(0, 0) }

func killTwo(e *engine) {
	e.servers.Kill(1)
	e.servers.Kill(2)
}

func restartTwo(e *engine) {
	e.servers.Restart(1)
	e.servers.Restart(2)
	e.servers.WaitReady()
}

func cutOff(e *engine) { e.servers.CutClients(0, true) }

func heal(e *engine) { e.servers.CutClients(0, false) }

func kill(e *engine) { e.servers.Kill(0) }

func restart(e *engine) {
	e.servers.Restart(0)
	e.servers.WaitReady()
}

// restore takes a backup, changes everything, and restores the backup.
func restore(e *engine) {
	backup := e.t.TempDir()
	replace := func(to, from string) {
		e.servers.Kill(0)
		require.NoError(e.t, os.RemoveAll(to))
		require.NoError(e.t, os.CopyFS(to, os.DirFS(from)))
		restart(e)
	}
	replace(backup, e.dir)
	for _, key := range []string{"before", "lost"} {
		_, err := e.near.plans.Put(within(e.t), key, 2)
		require.NoError(e.t, err)
	}
	require.NoError(e.t, e.near.trail.Append(within(e.t), "a", []entry{{Seq: 1, Value: "lost"}}))
	e.near.calls.Reset("before")
	e.near.calls.ForceOpen("lost")
	becomes(e.t, e.far.calls, "lost", atomicbreaker.ForcedOpen)
	require.NoError(e.t, e.far.plans.Sync(within(e.t)))
	replace(e.dir, backup)
}

// within returns a context that ends long after everything should have happened.
func within(t *testing.T) context.Context { return lasting(t, 40*time.Second) }

// shortly returns a context that ends when a call has waited for long enough.
func shortly(t *testing.T) context.Context { return lasting(t, 200*time.Millisecond) }

func lasting(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

func eventually(t *testing.T, holds func() bool) {
	t.Helper()
	require.Eventually(t, holds, 40*time.Second, 2*time.Millisecond)
}

// later runs a call, and returns a function that returns its error, and one that reports
// whether it has ended.
func later(call func() error) (result func() error, ended func() bool) {
	done := make(chan struct{})
	var err error
	go func() {
		defer close(done)
		err = call()
	}()
	return func() error { <-done; return err }, func() bool {
		select {
		case <-done:
			return true
		default:
			return false
		}
	}
}

// pass waits until time has passed in which nothing should happen.
func pass() { time.Sleep(200 * time.Millisecond) }

// isAny reports whether err matches one of some errors.
func isAny(err error, targets ...error) bool {
	for _, target := range targets {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}
