package shardedregistry

// Transact is [Registry.Transact] within the namespace. A transaction that uses keys of
// several namespaces is one of the registry.
//
// Transact is lock-free; if a key is absent or deleted, or it helps a transaction, it is
// blocking on the mutex of a hash bucket, and with indexes, TTL or a stream on more, see
// [Config]. It takes effect when it has committed, or, if it stores nothing, when the last
// key was read.
func (v View[K, V]) Transact(fn func(tx ViewTx[K, V]) error) error {
	if fn == nil {
		panic("shardedregistry: Transact called with a nil function")
	}
	return transact(v.registry.install(), v.has, func(tx *Tx[Scoped[K], V]) error { return fn(ViewTx[K, V]{v, tx}) })
}

// ViewTx is a [Tx] within a namespace, the argument of the function that [View.Transact]
// runs.
type ViewTx[K comparable, V any] struct {
	view View[K, V]
	tx   *Tx[Scoped[K], V]
}

// Get is [Tx.Get] within the namespace.
//
// Get is wait-free. It takes effect with its transaction.
func (t ViewTx[K, V]) Get(key K) (value V, ok bool) { return t.tx.Get(t.view.scoped(key)) }

// Lookup is [Tx.Lookup] within the namespace.
//
// Lookup is wait-free. It takes effect with its transaction.
func (t ViewTx[K, V]) Lookup(key K) (entry Entry[K, V], ok bool) {
	e, ok := t.tx.Lookup(t.view.scoped(key))
	return t.view.entry(e), ok
}

// Put is [Tx.Put] within the namespace.
//
// Put is wait-free. It takes effect with its transaction.
func (t ViewTx[K, V]) Put(key K, value V) error { return t.tx.Put(t.view.scoped(key), value) }

// Delete is [Tx.Delete] within the namespace.
//
// Delete is wait-free. It takes effect with its transaction.
func (t ViewTx[K, V]) Delete(key K) (entry Entry[K, V], ok bool) {
	e, ok := t.tx.Delete(t.view.scoped(key))
	return t.view.entry(e), ok
}
