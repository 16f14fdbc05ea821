//go:build !modelcheck

package oncecache

import (
	"context"
	"errors"
	"runtime"
	"testing"
)

// A creation that fails leaves the table before anyone can learn that it has: as
// long as nobody can remove its entry, it is under way.
func TestFailureLeavesBeforeItIsKnown(t *testing.T) {
	errRefused := errors.New("connection refused")
	for name, start := range map[string]func(ctx context.Context, c *Cache[string, int], fail func() error) error{
		"GetOrCreate": func(_ context.Context, c *Cache[string, int], fail func() error) error {
			_, err := c.GetOrCreate("k", func() (int, error) { return 0, fail() })
			return err
		},
		"GetOrCreateContext": func(ctx context.Context, c *Cache[string, int], fail func() error) error {
			_, err := c.GetOrCreateContext(ctx, "k", func(context.Context, string) (int, error) { return 0, fail() })
			return err
		},
		"GetOrCreateMany": func(ctx context.Context, c *Cache[string, int], fail func() error) error {
			_, err := c.GetOrCreateMany(ctx, []string{"k"}, func(context.Context, []string) (map[string]int, error) { return nil, fail() })
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := new(Cache[string, int])
			r := c.shared()
			type found = *entry[string]
			held, returns := make(chan found), make(chan found)
			unlock, done := make(chan struct{}), make(chan error)
			go func() {
				done <- start(t.Context(), c, func() error {
					go r.entries.Compute(r.at("k"), func(now found) found {
						held <- now
						<-unlock
						return now
					})
					returns <- <-held
					return errRefused
				})
			}()
			e := <-returns
			for range 10000 {
				runtime.Gosched() // to the creator
				if !e.state.Load().creating() {
					t.Fatal("the failure is known, and its entry is in the table")
				}
			}
			close(unlock)
			if err := <-done; !errors.Is(err, errRefused) {
				t.Error(err)
			}
			if !e.failed() || r.size() != 0 || r.creating() != 0 {
				t.Errorf("failed %t, %d entries", e.failed(), r.size())
			}
		})
	}
}
