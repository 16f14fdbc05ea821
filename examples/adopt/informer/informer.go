// Package informer keeps a copy of what a server has, by list and watch, as the clients of
// Kubernetes do: before, with maps and a mutex, and after, with shardedregistry.
package informer

import (
	"context"
	"errors"
	"iter"
)

// Object is what the server has. Each change of any object gives it a higher Version.
type Object struct {
	Key, Node string
	Labels    []string
	Version   uint64
}

// Event is a change of an object.
type Event struct {
	Object
	Deleted bool
}

// IndexFunc returns the values under which an index has an object.
type IndexFunc func(Object) []string

// Store is what both ways are. One goroutine writes, any number read.
type Store interface {
	Get(key string) (Object, bool)
	// ByIndex yields the objects that have a value in an index.
	ByIndex(index, value string) iter.Seq[Object]
	// Watch yields what has changed since the loop began, until ctx ends. Of several changes
	// of an object it may yield the last alone.
	Watch(ctx context.Context) iter.Seq[Event]

	// Replace makes the store contain what a list has, and nothing else.
	Replace(list []Object)
	// Apply takes a change, unless the store has the object in that version or a later one.
	Apply(e Event)
}

// ErrExpired: the server does not remember what has changed since the version.
var ErrExpired = errors.New("too old a version")

// Server is where objects are.
type Server interface {
	// List returns all objects, and the version up to which they have all changes.
	List(ctx context.Context) (list []Object, version uint64, err error)
	// Watch yields all changes after a version, and an error when it breaks.
	Watch(ctx context.Context, version uint64) iter.Seq2[Event, error]
}

// Run keeps the store as the server is, until ctx ends or a list fails. A watch that breaks goes
// on where it was, and after ErrExpired with another list.
func Run(ctx context.Context, server Server, store Store) error {
	for {
		list, version, err := server.List(ctx)
		if err != nil {
			return err
		}
		store.Replace(list)
		for expired := false; !expired; {
			for e, err := range server.Watch(ctx, version) {
				if err != nil {
					expired = errors.Is(err, ErrExpired)
					break
				}
				store.Apply(e)
				version = e.Version
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
		}
	}
}
