package model

import (
	"slices"
	"time"

	"github.com/latchfree/latchfree/shardedregistry"
)

// TxOps is what both a transaction and its model do.
type TxOps interface {
	Get(string) (int, bool)
	Lookup(string) (Entry, bool)
	Put(string, int) error
	Delete(string) (Entry, bool)
}

// Transact runs fn on r, which is a Registry or a model.
func Transact(r RegistryOps, fn func(TxOps) error) error {
	if m, ok := r.(*Registry); ok {
		return m.Transact(fn)
	}
	whole := r.(interface {
		Transact(func(*shardedregistry.Tx[string, int]) error) error
	})
	return whole.Transact(func(tx *shardedregistry.Tx[string, int]) error { return fn(tx) })
}

// tx is a transaction of a model.
type tx struct {
	r       *Registry
	written map[string]created // by key; with version 0 if it was deleted
	order   []string           // of the keys that were used
}

// Transact changes r at once, or not at all. If values of several keys are rejected, it
// returns the error of any.
func (r *Registry) Transact(fn func(TxOps) error) error {
	tx := &tx{r, map[string]created{}, nil}
	if err := fn(tx); err != nil {
		return err
	}
	for _, validate := range []func(string, int) error{r.validate, tx.unique} {
		for _, key := range tx.order {
			if w, ok := tx.written[key]; ok && w.Version != 0 {
				if err := validate(key, w.Value); err != nil {
					return err
				}
			}
		}
	}
	ttls := map[string]time.Duration{}
	for key, w := range tx.written {
		if w.Version != 0 {
			ttls[key] = r.ttl(key, w.Value)
		}
	}
	for key, w := range tx.written {
		if w.Version == 0 {
			continue
		}
		e, ok := r.live[key]
		if !ok {
			e = created{Entry{Key: key, Version: r.floors[r.shard(key)]}, w.spelled}
		}
		e.Value = w.Value
		e.Version++
		r.live[key] = e
		r.lives(key, ttls[key])
	}
	for key, w := range tx.written {
		if w.Version == 0 {
			r.Delete(key)
		}
	}
	return nil
}

// unique returns an error if another key has one of the unique values afterwards.
func (tx *tx) unique(key string, v int) error {
	after := map[string]int{}
	for other, e := range tx.r.live {
		after[other] = e.Value
	}
	for other, w := range tx.written {
		if after[other] = w.Value; w.Version == 0 {
			delete(after, other)
		}
	}
	delete(after, key)
	for index := range tx.r.config.UniqueIndexes {
		for _, value := range tx.r.values(index, key, v) {
			for other, w := range after {
				if slices.Contains(tx.r.values(index, other, w), value) {
					return &shardedregistry.UniqueError{Index: index, Value: value, Key: other}
				}
			}
		}
	}
	return nil
}

// use notes that a key is used.
func (tx *tx) use(given string) (key string, err error) {
	key, err = tx.r.normalize(given)
	if err == nil && !slices.Contains(tx.order, key) {
		tx.order = append(tx.order, key)
	}
	return key, err
}

func (tx *tx) Get(given string) (int, bool) {
	e, ok := tx.Lookup(given)
	return e.Value, ok
}

func (tx *tx) Lookup(given string) (Entry, bool) {
	key, err := tx.use(given)
	if w, ok := tx.written[key]; ok && err == nil {
		if w.Version == 0 {
			return Entry{}, false
		}
		return Entry{Key: key, Value: w.Value}, true
	}
	return tx.r.Lookup(given)
}

func (tx *tx) Put(given string, v int) error {
	key, err := tx.use(given)
	if err == nil {
		tx.written[key] = created{Entry{Key: key, Value: v, Version: 1}, given}
	}
	return err
}

func (tx *tx) Delete(given string) (Entry, bool) {
	key, err := tx.use(given)
	if err != nil {
		return Entry{}, false
	}
	e, ok := tx.Lookup(given)
	tx.written[key] = created{}
	return e, ok
}
