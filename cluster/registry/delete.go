package registry

import (
	"context"
	"errors"

	"github.com/nats-io/nats.go"
)

// deletion is the header of a marker.
func deletion() nats.Header { return nats.Header{"KV-Operation": {"DEL"}} }

// nothing is the value of a marker.
func nothing[V any](state[V]) ([]byte, error) { return nil, nil }

// Delete removes key and returns what it held, and whether it was present. A key with a
// foreign value gives [ErrForeign].
//
// The bucket keeps a marker of the key, as for any KV client; PurgeDeletes of
// jetstream.KeyValue removes old ones.
//
// Delete panics if ctx is nil. It is blocking: it waits for the bucket and the mirror. It
// takes effect when the bucket stores the marker.
func (r *Registry[K, V]) Delete(ctx context.Context, key K) (Entry[K, V], bool, error) {
	w, err := r.begin(ctx, "Delete", key, nil)
	if err != nil {
		return Entry[K, V]{}, false, err
	}
	w.header = deletion()
	s, marked, err := w.change(w.present, nothing[V])
	if errors.Is(err, ErrNotFound) {
		return Entry[K, V]{}, false, nil
	}
	if marked == 0 {
		return Entry[K, V]{}, false, err
	}
	return Entry[K, V]{Key: w.key, Value: s.value, Version: Version(s.revision)}, true, err
}

// DeleteIf removes key if its version is version. The errors are those of UpdateIf.
//
// DeleteIf panics if ctx is nil. It is blocking: it waits for the bucket and the mirror.
// It takes effect when the bucket stores the marker.
func (r *Registry[K, V]) DeleteIf(ctx context.Context, key K, version Version) error {
	w, err := r.begin(ctx, "DeleteIf", key, nil)
	if err != nil {
		return err
	}
	w.header = deletion()
	_, _, err = w.change(w.at(version), nothing[V])
	return err
}
