package registry_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/latchfree/latchfree/cluster/internal/natstest"
	"github.com/latchfree/latchfree/cluster/registry"
)

func ExampleTTL() {
	// once runs work unless another replica does it, or has done it.
	once := func(ctx context.Context, claims *registry.Registry[string, string], job, owner string,
		work func(ctx context.Context, token registry.Version) error) error {
		const ttl = 6 * time.Second
		until := time.Now().Add(ttl) // the claim is ours at least till then
		token, err := claims.Create(ctx, job, "claimed by "+owner, registry.TTL(ttl))
		if err != nil {
			return err // ErrExists; after ErrUnknown, the claim may be stored, and expires
		}
		version := token
		working, stop := context.WithCancel(ctx)
		defer stop() // also when work panics
		renewals := make(chan struct{})
		go func() {
			defer close(renewals)
			defer stop() // the work ends when the claim may have expired
			for {
				select {
				case <-working.Done():
					return
				case <-time.After(ttl / 3):
				}
				next := time.Now().Add(ttl)
				renewing, cancel := context.WithDeadline(ctx, until)
				v, err := claims.Renew(renewing, job, version, ttl)
				cancel()
				if err != nil {
					return
				}
				version, until = v, next
			}
		}()
		err = work(working, token)
		stop()
		<-renewals
		if err != nil {
			return errors.Join(err, claims.DeleteIf(ctx, job, version)) // another may try
		}
		_, err = claims.UpdateIf(ctx, job, version, "done by "+owner) // has no TTL: it stays
		return err
	}

	replicas(func(ctx context.Context, ada, bob *registry.Registry[string, string]) {
		work := func(_ context.Context, token registry.Version) error {
			// Here it would write to a store, which refuses a token below the highest one it has seen.
			fmt.Println("ada's replica works, with a token:", token > 0)
			return once(ctx, bob, "report", "bob", nil)
		}
		err := once(ctx, ada, "report", "ada", work)
		fmt.Println("bob's replica found a claim:", errors.Is(err, registry.ErrExists))

		work = func(context.Context, registry.Version) error { return nil }
		fmt.Println("and then:", once(ctx, bob, "report", "bob", work))
		fmt.Println(bob.Get("report"))
	})
	// Output:
	// ada's replica works, with a token: true
	// bob's replica found a claim: true
	// and then: <nil>
	// done by bob true
}

// replicas calls f with two registries of one bucket.
func replicas(f func(ctx context.Context, ada, bob *registry.Registry[string, string])) {
	ctx := context.Background()
	js, stop := natstest.Local() // a server for this example
	defer stop()
	if _, err := js.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: "claims", LimitMarkerTTL: time.Minute}); err != nil {
		fmt.Println(err)
		return
	}
	var rs [2]*registry.Registry[string, string]
	for i := range rs {
		r, err := registry.Open(ctx, js, "claims", registry.Config[string, string]{})
		if err != nil {
			fmt.Println(err)
			return
		}
		defer r.Close(ctx)
		rs[i] = r
	}
	f(ctx, rs[0], rs[1])
}
