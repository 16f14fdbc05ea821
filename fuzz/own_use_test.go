package fuzz

import (
	"maps"
	"testing"

	"github.com/latchfree/latchfree/shardedregistry"
)

// rename moves what is at one key to another one that is free, as a program may need it.
func rename(r *shardedregistry.Registry[byte, int], from, to byte) error {
	return r.Transact(func(tx *shardedregistry.Tx[byte, int]) error {
		v, ok := tx.Get(from)
		if !ok {
			return shardedregistry.ErrNotFound
		}
		if _, taken := tx.Get(to); taken {
			return shardedregistry.ErrExists
		}
		tx.Delete(from)
		return tx.Put(to, v)
	})
}

// FuzzOwnUse shows how a program fuzzes its own use of a registry.
func FuzzOwnUse(f *testing.F) {
	f.Add([]byte{0, 1, 1, 2, 2, 0})
	f.Fuzz(func(t *testing.T, ops []byte) {
		r, model := new(shardedregistry.Registry[byte, int]), map[byte]int{}
		for i := 0; i+1 < len(ops); i += 2 {
			from, to := ops[i]%4, ops[i+1]%4
			if from == to { // one operation of the program
				r.Put(to, i)
				model[to] = i
				continue
			}
			err := rename(r, from, to) // another one
			v, ok := model[from]
			_, taken := model[to]
			if (err == nil) != (ok && !taken) {
				t.Fatalf("rename %d to %d: %v; there are %v", from, to, err, model)
			}
			if err == nil {
				delete(model, from)
				model[to] = v
			}
			held := map[byte]int{}
			for e := range r.Entries() {
				held[e.Key] = e.Value
			}
			if !maps.Equal(held, model) {
				t.Fatalf("the registry has %v, want %v", held, model)
			}
		}
	})
}
