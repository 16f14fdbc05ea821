// Package keyset keeps the keys with which issuers sign tokens, as a client of OpenID Connect does:
// before, with a map, a mutex and a flight for each issuer, and after, with oncecache.
//
// Keys are refreshed early, by the first caller that finds them old, and used for long if the issuer
// is down. A key that is not in the set may be new, so that the set is fetched once more.
package keyset

import (
	"context"
	"errors"
	"time"
)

// ErrUnknownKey: the issuer has no such key.
var ErrUnknownKey = errors.New("the issuer has no such key")

const (
	// RefreshAfter is how old a set may be that is used without a thought.
	RefreshAfter = 5 * time.Minute
	// StaleAfter is how old a set may be at all.
	StaleAfter = 24 * time.Hour
	// fetchPause bounds how often unknown keys make the set be fetched: tokens may be forged.
	fetchPause = 10 * time.Second
)

// Keys is a set by key ID. A real one has public keys.
type Keys map[string]string

// Fetch gets the set of an issuer.
type Fetch func(ctx context.Context, issuer string) (Keys, error)

// Set is what both ways are.
type Set interface {
	// Key returns a key of an issuer.
	Key(ctx context.Context, issuer, id string) (string, error)
}

// fetched is a set with its age.
type fetched struct {
	keys Keys
	at   time.Time
}

func (f fetched) key(id string) (string, error) {
	if key, ok := f.keys[id]; ok {
		return key, nil
	}
	return "", ErrUnknownKey
}

// mayBeOld reports whether to fetch the set once more for a key that it lacks.
func (f fetched) mayBeOld() bool { return time.Since(f.at) >= fetchPause }
