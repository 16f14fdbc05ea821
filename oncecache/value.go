package oncecache

import (
	"context"
	"unsafe"
)

// boxed is an entry with its value.
type boxed[K comparable, V any] struct {
	head  entry[K]
	value V
}

// boxOf returns e with its value. Here the shell, which knows V, and the core,
// which does not, meet: see DESIGN.md. The doc of entry says when the value may be read
// and written.
func boxOf[V any, K comparable](e *entry[K]) *boxed[K, V] {
	// Safety: the entries of a cache of V are made by freshEntry alone, each as the head of
	// a boxed[K, V], and stay with their cache and its leases, none of which can be converted
	// to one of other values.
	return (*boxed[K, V])(unsafe.Pointer(e))
}

// valueOf returns where the value of e is.
func valueOf[V any, K comparable](e *entry[K]) *V { return &boxOf[V](e).value }

// freshOf returns an entry whose value is zero, which others have not seen.
func freshOf[K comparable, V any](k K) *entry[K] {
	return &(&boxed[K, V]{head: entry[K]{key: k}}).head
}

// newBoxed returns an entry for r with a value, which others have not seen.
func newBoxed[K comparable, V any](r *root[K], k K, v V) *entry[K] {
	e := r.of.freshEntry(k)
	*valueOf[V](e) = v
	return e
}

// values has the functions that the core needs for the type of its values, in any cache.
// It is kind[K, V], markedKind[K, V] or renewing[K]. Functions that only some caches need are
// apart, as in root.close. The names of the methods are their own, because the linker keeps
// all methods of a name that is called here.
type values[K comparable] interface {
	// freshEntry returns an entry whose value is zero, which others have not seen. It has a
	// mark if the cache is marked.
	freshEntry(k K) *entry[K]

	// makeValue calls create and writes what it returns into e, unless that is an
	// error.
	makeValue(ctx context.Context, create creator, e *entry[K]) error

	// copyValue copies the value of from, which is written, into to.
	copyValue(to, from *entry[K])
}

type kind[K comparable, V any] struct{}

// creator is a func(context.Context, K) (V, error) for the core, which hands it on to
// makeValue, and must not call it. It is no interface, which would be two words, and
// make the frames of waiting calls larger.
type creator func()

func creatorOf[K comparable, V any](create func(context.Context, K) (V, error)) creator {
	// Safety: a function is one pointer, whatever its type.
	return *(*creator)(unsafe.Pointer(&create))
}

func (kind[K, V]) freshEntry(k K) *entry[K] { return freshOf[K, V](k) }

func (kind[K, V]) makeValue(ctx context.Context, create creator, e *entry[K]) error {
	// Safety: the core hands on the result of creatorOf for a function for values of the
	// same cache.
	v, err := (*(*func(context.Context, K) (V, error))(unsafe.Pointer(&create)))(ctx, e.key)
	if err == nil {
		*valueOf[V](e) = v
	}
	return err
}

func (kind[K, V]) copyValue(to, from *entry[K]) { *valueOf[V](to) = *valueOf[V](from) }

// markedKind is kind for a cache that is marked. Only New makes it, so that only programs that
// call New have it.
type markedKind[K comparable, V any] struct{ kind[K, V] }

// marked is a boxed with a mark. Each entry of a cache with root.marked is in one.
type marked[K comparable, V any] struct {
	_ mark
	boxed[K, V]
}

func (markedKind[K, V]) freshEntry(k K) *entry[K] {
	return &(&marked[K, V]{boxed: boxed[K, V]{head: entry[K]{key: k}}}).head
}

// use returns the value of e if there is one, for a caller that uses it.
func use[V any, K comparable](r *root[K], e *entry[K]) (v V, ok bool) {
	if e.inUse(r.marked) || r.marked && e.usable() {
		return *valueOf[V](e), true
	}
	return v, false
}

// get returns the value of e if there is one, for a caller that only looks.
func get[V any, K comparable](e *entry[K]) (v V, ok bool) {
	if e.has() {
		return *valueOf[V](e), true
	}
	return v, false
}

// copied returns another entry of the key of e with the value of that, which is
// written. It has no count of leases.
func (r *root[K]) copied(e *entry[K]) *entry[K] {
	n := r.of.freshEntry(e.key)
	r.of.copyValue(n, e)
	return n
}
