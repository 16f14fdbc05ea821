//go:build !modelcheck

package shardedregistry_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/latchfree/latchfree/shardedregistry"
)

func ExampleNew() {
	_, err := shardedregistry.New(shardedregistry.Config[string, int]{Shards: -1})
	fmt.Println(err)
	// Output: shardedregistry: Config.Shards -1: must not be negative
}

func ExampleConfig_normalize() {
	steps := shardedregistry.MustNew(shardedregistry.Config[string, int]{ // of plans, by their names
		Normalize: func(name string) (string, error) {
			name = strings.ToLower(strings.TrimSpace(name))
			if name == "" {
				return "", errors.New("a plan needs a name")
			}
			return name, nil
		},
	})
	steps.Create("Nightly", 3)
	_, err := steps.Create("NIGHTLY", 5)
	fmt.Println(err)
	_, err = steps.Create("  ", 1)
	fmt.Println(err)
	entry, _ := steps.Lookup(" nightly ")
	fmt.Println(entry.Key, entry.Value)
	// Output:
	// shardedregistry: key exists: NIGHTLY, created as Nightly, at version 1
	// shardedregistry: invalid key: a plan needs a name
	// nightly 3
}

func ExampleConfig_check() {
	errNegative := errors.New("must not be negative")
	accounts := shardedregistry.MustNew(shardedregistry.Config[string, int]{
		Check: func(_ string, balance int) error {
			if balance < 0 {
				return errNegative
			}
			return nil
		},
	})
	accounts.Put("ann", 10)
	_, err := accounts.Update("ann", func(balance int) (int, error) { return balance - 20, nil })
	balance, _ := accounts.Get("ann")
	fmt.Println(balance, err)
	// Output: 10 must not be negative
}

func ExampleRegistry_ByIndex() {
	type plan struct {
		Owner string
		Tags  []string
	}
	plans := shardedregistry.MustNew(shardedregistry.Config[string, *plan]{
		Indexes: map[string]func(string, *plan) []string{
			"owner": func(_ string, p *plan) []string { return []string{p.Owner} },
			"tag":   func(_ string, p *plan) []string { return p.Tags },
		},
	})
	plans.Put("backup", &plan{"ann", []string{"nightly", "disk"}})
	plans.Put("resize", &plan{"ann", []string{"disk"}})
	plans.Put("drain", &plan{"bob", []string{"nightly"}})

	plans.Update("backup", func(p *plan) (*plan, error) { return &plan{"bob", p.Tags}, nil })
	for e := range plans.ByIndex("owner", "ann") {
		fmt.Println("ann:", e.Key, e.Version)
	}
	for e := range plans.ByIndex("tag", "nightly") {
		plans.Delete(e.Key) // the body may change the registry
	}
	fmt.Println(slices.Collect(plans.IndexValues("tag")))
	// Output:
	// ann: resize 1
	// [disk]
}

func ExampleRegistry_LookupBy() {
	addresses := shardedregistry.MustNew(shardedregistry.Config[string, string]{ // of users
		UniqueIndexes: map[string]func(string, string) []string{
			"email": func(_, address string) []string { return []string{address} },
		},
	})
	addresses.Create("ann", "ann@example.com")
	_, err := addresses.Create("anna", "ann@example.com")
	var taken *shardedregistry.UniqueError
	if errors.As(err, &taken) {
		fmt.Println(taken.Value, "is the", taken.Index, "of user", taken.Key)
	}
	addresses.Put("ann", "a@example.com") // gives the other up
	_, err = addresses.Create("anna", "ann@example.com")
	entry, ok := addresses.LookupBy("email", "ann@example.com")
	fmt.Println(err, entry.Key, ok)
	// Output:
	// ann@example.com is the email of user ann
	// <nil> anna true
}

func ExampleRegistry_IndexValues() {
	hosts := shardedregistry.MustNew(shardedregistry.Config[string, string]{ // to their regions
		Indexes: map[string]func(string, string) []string{
			"region": func(_, region string) []string { return []string{region} },
		},
	})
	hosts.Put("a", "north")
	hosts.Put("b", "south")
	hosts.Put("c", "south")
	hosts.Delete("a") // the last one in the north
	fmt.Println(slices.Collect(hosts.IndexValues("region")))
	// Output: [south]
}

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
	sessions := shardedregistry.MustNew(shardedregistry.Config[string, *session]{
		TTL: func(id string, s *session) time.Duration {
			if s.ends.IsZero() {
				return math.MaxInt64
			}
			return time.Until(s.ends)
		},
	})
	version, _ := sessions.Put("a", &session{"ann", time.Now().Add(100 * time.Millisecond)})
	sessions.Put("b", &session{user: "bob"})
	_, err := sessions.Wait(context.Background(), "a", version)
	fmt.Println(err, sessions.Len())
	// Output: shardedregistry: key not found 1
}
