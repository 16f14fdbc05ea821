package repotest_test

import (
	"context"
	"fmt"

	"github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/oncecache"
	"github.com/latchfree/latchfree/shardedregistry"
)

// What the sample of README.md leaves out.
var ctx = context.Background()

const (
	host = "db-1"
	url  = "postgres://db-1/orders"
)

type engine struct{ url string }

func ping(context.Context) error { return nil }

func open() (*engine, error) { return &engine{url}, nil }

func Example() {
	var breakers atomicbreaker.Group[string]          // one circuit breaker per host
	var engines oncecache.Cache[string, *engine]      // one engine per URL
	var actions shardedregistry.Registry[string, int] // runs of each action, with versions
	var changes cowchangeset.Tracker[string]          // an audit trail
	err := breakers.Do(ctx, host, ping)               // ErrRejected at once while the host is down
	db, _ := engines.GetOrCreate(url, open)           // open runs once, however many callers ask
	actions.Create("backup", 1)
	_, exists := actions.Create("backup", 9) // an error: Create never overwrites
	changes.Start(ctx)
	receipt, _ := changes.Record("row inserted") // in exactly one changeset: the receipt says which
	fmt.Println(receipt.Ordinal, err, db.url, exists)
	// Output: 1 <nil> postgres://db-1/orders shardedregistry: key exists: backup at version 1
}
