//go:build !modelcheck

package oncecache_test

import (
	"context"
	"fmt"
	"time"

	"github.com/latchfree/latchfree/oncecache"
)

// A token is kept until shortly before it expires by itself.
func ExampleConfig_tTL() {
	type token struct {
		secret  string
		expires time.Time
	}
	tokens := oncecache.MustNew(oncecache.Config[string, token]{
		TTLFunc: func(_ string, t token) time.Duration { return time.Until(t.expires) - time.Minute },
	})
	fetch := func(lasts time.Duration) func() (token, error) {
		return func() (token, error) { return token{"s3cret", time.Now().Add(lasts)}, nil }
	}
	tokens.GetOrCreate("long", fetch(time.Hour))
	tokens.GetOrCreate("short", fetch(time.Second)) // too short to be kept
	_, long := tokens.Get("long")
	_, short := tokens.Get("short")
	fmt.Println(long, short)
	// Output: true false
}

// Prices are fresh for a minute. For one minute more callers get the old price at once while one
// call of Renew asks for the new one, and also while the source is down.
func ExampleConfig_renew() {
	prices := oncecache.MustNew(oncecache.Config[string, int]{
		TTLFunc:    func(string, int) time.Duration { return 2 * time.Minute },
		TTLJitter:  0.1,
		RenewAhead: time.Minute,
		Renew: func(ctx context.Context, product string, old int) (int, error) {
			return old + 1, nil // ask the source
		},
	})
	price, err := prices.GetOrCreate("tea", func() (int, error) { return 320, nil })
	fmt.Println(price, err)
	// Output: 320 <nil>
}
