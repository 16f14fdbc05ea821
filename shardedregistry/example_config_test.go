//go:build !modelcheck

package shardedregistry_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"

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

func ExampleConfig_clone() {
	type team struct{ members []string }
	teams := shardedregistry.MustNew(shardedregistry.Config[string, *team]{
		Clone: func(t *team) *team { return &team{slices.Clone(t.members)} },
	})
	teams.Create("red", &team{[]string{"ann"}})

	mine, _ := teams.Get("red")
	mine.members[0] = "eve" // changes a copy
	teams.Update("red", func(t *team) (*team, error) {
		t.members = append(t.members, "bob") // likewise, and stores it
		return t, nil
	})
	theirs, _ := teams.Get("red")
	fmt.Println(theirs.members)
	// Output: [ann bob]
}

func ExampleConfig_fingerprint() {
	type team struct{ Members []string }
	teams := shardedregistry.MustNew(shardedregistry.Config[string, *team]{ // in a test
		Fingerprint: func(t *team) string { return fmt.Sprint(*t) },
	})
	teams.Create("red", &team{[]string{"ann"}})
	defer func() { fmt.Println(recover()) }()

	mine, _ := teams.Get("red")
	mine.Members[0] = "eve" // changes what everybody sees
	teams.Get("red")
	// Output: shardedregistry: the value of red at version 1 was changed behind the registry's back: it was {[ann]} and is {[eve]}
}
