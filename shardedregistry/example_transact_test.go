//go:build !modelcheck

package shardedregistry_test

import (
	"errors"
	"fmt"

	"github.com/latchfree/latchfree/shardedregistry"
)

func ExampleRegistry_Transact() {
	var accounts shardedregistry.Registry[string, int]
	accounts.Put("ann", 100)
	accounts.Put("bob", 20)

	errShort := errors.New("not enough money")
	transfer := func(from, to string, amount int) error {
		return accounts.Transact(func(tx *shardedregistry.Tx[string, int]) error {
			has, _ := tx.Get(from)
			if has < amount {
				return errShort // and nothing has changed
			}
			if err := tx.Put(from, has-amount); err != nil {
				return err
			}
			gets, _ := tx.Get(to)
			return tx.Put(to, gets+amount)
		})
	}

	fmt.Println(transfer("ann", "bob", 30))
	fmt.Println(transfer("bob", "eve", 70))
	ann, _ := accounts.Get("ann")
	bob, _ := accounts.Get("bob")
	fmt.Println(ann, bob, accounts.Len())
	// Output:
	// <nil>
	// not enough money
	// 70 50 2
}

func ExampleTx_Lookup() {
	var plans shardedregistry.Registry[string, string]
	plans.Put("draft", "v1")
	// Rename a key, unless somebody has the new name.
	err := plans.Transact(func(tx *shardedregistry.Tx[string, string]) error {
		if e, ok := tx.Lookup("final"); ok {
			return &shardedregistry.ExistsError{Given: "final", Stored: e.Key, Version: e.Version}
		}
		e, ok := tx.Delete("draft")
		if !ok {
			return shardedregistry.ErrNotFound
		}
		return tx.Put("final", e.Value)
	})
	_, ok := plans.Get("draft")
	final, _ := plans.Get("final")
	fmt.Println(err, ok, final)
	// Output: <nil> false v1
}
