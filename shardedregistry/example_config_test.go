//go:build !modelcheck

package shardedregistry_test

import (
	"errors"
	"fmt"
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
