//go:build !modelcheck

package shardedregistry_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/latchfree/latchfree/shardedregistry"
)

// Instances of a service are present as long as they send heartbeats. A heartbeat changes no
// version and wakes nobody; that an instance is gone is an event.
func ExampleRegistry_Renew_heartbeat() {
	const life = 200 * time.Millisecond
	instances := shardedregistry.MustNew(shardedregistry.Config[string, string]{
		TTL: func(id, address string) time.Duration { return life },
	})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()

	version, _ := instances.Create("web-1", "10.0.0.1:80")
	go func() {
		beats := time.NewTicker(life / 5)
		defer beats.Stop()
		for range 3 { // and then it crashes
			<-beats.C
			if instances.Renew("web-1", version, life) != nil {
				return // it was too late: it has to register again
			}
		}
	}()

	for state, event := range instances.WatchSnapshot(ctx) {
		if state != nil {
			fmt.Println("instances:", state.Len())
		} else if event.Deleted {
			fmt.Println(event.Key, "is gone, expired:", event.Expired)
			break
		}
	}
	// Output:
	// instances: 1
	// web-1 is gone, expired: true
}

// A lock that its owner holds for a time, and renews. The version is a fencing token: the
// resource rejects an owner that has lost the lock and does not know it.
func ExampleRegistry_Renew_lock() {
	locks := shardedregistry.MustNew(shardedregistry.Config[string, string]{
		TTL: func(name, owner string) time.Duration { return 200 * time.Millisecond },
	})
	var highest shardedregistry.Version // that the resource has seen
	write := func(token shardedregistry.Version, text string) error {
		if token < highest {
			return errors.New("the lock was lost")
		}
		highest = token
		fmt.Println("written by", text)
		return nil
	}

	ann, _ := locks.Create("disk", "ann")
	_, err := locks.Create("disk", "bob")
	fmt.Println("bob:", errors.Is(err, shardedregistry.ErrExists))
	write(ann, "ann")

	// Ann is stopped for so long that her time is over. Bob waits for that.
	_, err = locks.Wait(context.Background(), "disk", ann)
	fmt.Println(err)
	bob, _ := locks.Create("disk", "bob")
	write(bob, "bob")

	// Ann goes on.
	fmt.Println(write(ann, "ann"))
	err = locks.Renew("disk", ann, time.Second)
	fmt.Println(errors.Is(err, shardedregistry.ErrNotFound) || errors.Is(err, shardedregistry.ErrConflict))
	// Output:
	// bob: true
	// written by ann
	// shardedregistry: key not found
	// written by bob
	// the lock was lost
	// true
}

// Some entities expire at a time that is part of them, and others never.
func ExampleConfig_tTL() {
	type session struct {
		user string
		ends time.Time // zero: it does not end
	}
	sessions := shardedregistry.MustNew(shardedregistry.Config[string, session]{
		TTL: func(id string, s session) time.Duration {
			if s.ends.IsZero() {
				return math.MaxInt64
			}
			return time.Until(s.ends)
		},
	})
	version, _ := sessions.Put("a", session{"ann", time.Now().Add(100 * time.Millisecond)})
	sessions.Put("b", session{user: "bob"})
	_, err := sessions.Wait(context.Background(), "a", version)
	fmt.Println(err, sessions.Len())
	// Output: shardedregistry: key not found 1
}
