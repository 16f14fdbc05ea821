package keyset

import (
	"context"
	"sync"
	"time"
)

// Before is the usual way. The first caller that needs a set fetches it, and the others wait.
type Before struct {
	fetch Fetch

	mu      sync.Mutex
	sets    map[string]fetched
	flights map[string]*flight
}

// flight is a fetch that callers share.
type flight struct {
	done   chan struct{}
	result fetched
	err    error
}

// NewBefore returns an empty set.
func NewBefore(fetch Fetch) *Before {
	return &Before{fetch: fetch, sets: map[string]fetched{}, flights: map[string]*flight{}}
}

// Key implements Set.
func (b *Before) Key(ctx context.Context, issuer, id string) (string, error) {
	b.mu.Lock()
	set, ok := b.sets[issuer]
	age, isFetched := time.Since(set.at), b.flights[issuer] != nil
	b.mu.Unlock()
	var err error
	switch {
	case !ok || age >= StaleAfter:
		set, err = b.share(ctx, issuer)
	case age >= RefreshAfter && !isFetched:
		go b.share(context.WithoutCancel(ctx), issuer) // which keeps the set if it fails
	}
	if err != nil {
		return "", err
	}
	key, err := set.key(id)
	if err != nil && set.mayBeOld() {
		if set, err = b.share(ctx, issuer); err != nil {
			return "", err
		}
		key, err = set.key(id)
	}
	return key, err
}

// share fetches the set, unless somebody does already.
func (b *Before) share(ctx context.Context, issuer string) (fetched, error) {
	b.mu.Lock()
	f := b.flights[issuer]
	if f != nil {
		b.mu.Unlock()
		select {
		case <-f.done:
			return f.result, f.err
		case <-ctx.Done():
			return fetched{}, ctx.Err()
		}
	}
	f = &flight{done: make(chan struct{})}
	b.flights[issuer] = f
	b.mu.Unlock()

	keys, err := b.fetch(ctx, issuer)
	f.result, f.err = fetched{keys, time.Now()}, err

	b.mu.Lock()
	if err == nil {
		b.sets[issuer] = f.result
	}
	delete(b.flights, issuer)
	b.mu.Unlock()
	close(f.done)
	return f.result, f.err
}
