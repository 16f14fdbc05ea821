package keyset

import (
	"context"
	"time"

	"github.com/latchfree/latchfree/oncecache"
)

// After is the way with a cache that renews its values.
type After struct {
	sets *oncecache.Cache[string, fetched]
}

// NewAfter returns an empty set.
func NewAfter(fetch Fetch) *After {
	return &After{oncecache.MustNew(oncecache.Config[string, fetched]{
		Create: func(ctx context.Context, issuer string) (fetched, error) {
			keys, err := fetch(ctx, issuer)
			return fetched{keys, time.Now()}, err
		},
		TTL:        StaleAfter,
		RenewAhead: StaleAfter - RefreshAfter,
	})}
}

// Key implements Set.
func (a *After) Key(ctx context.Context, issuer, id string) (string, error) {
	set, err := a.sets.Load(ctx, issuer)
	if err != nil {
		return "", err
	}
	key, err := set.key(id)
	if err != nil && set.mayBeOld() {
		if set, err = a.sets.Refresh(ctx, issuer, nil); err != nil { // by Create
			return "", err
		}
		key, err = set.key(id)
	}
	return key, err
}
