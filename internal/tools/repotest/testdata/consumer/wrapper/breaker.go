// Package wrapper wraps the four packages, as a service does for its own
// packages. Most functions are small enough to be inlined into their callers.
package wrapper

import (
	"context"
	"net/http"
	"time"

	"github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/atomicbreaker/throttle"
)

// Client calls something behind a breaker of its own, and one for each host
// and each shard.
type Client struct {
	breaker  atomicbreaker.Breaker
	throttle throttle.Throttle
	hosts    atomicbreaker.Group[string]
	shards   atomicbreaker.Group[int]
}

// Open opens the breaker, and that of one host and one shard.
func (c *Client) Open(host string, shard int) {
	c.breaker.Trip(time.Hour)
	c.hosts.Trip(host, time.Hour)
	c.shards.Trip(shard, time.Hour)
}

// Ask is Breaker.Allow and Permit.Success.
func (c *Client) Ask() bool {
	p, err := c.breaker.Allow()
	if err != nil {
		return false
	}
	p.Success()
	return true
}

// Report is Breaker.Allow and Permit.Done.
func (c *Client) Report(result error) error {
	p, err := c.breaker.Allow()
	if err != nil {
		return err
	}
	p.Done(result)
	return result
}

// FailAndRecover is Permit.Failure and Permit.Success.
func (c *Client) FailAndRecover() {
	if p, err := c.breaker.Allow(); err == nil {
		p.Failure()
	}
	if p, err := c.breaker.Allow(); err == nil {
		p.Success()
	}
}

// Count is Execute.
func (c *Client) Count(fn func() (int, error)) (int, error) {
	return atomicbreaker.Execute(&c.breaker, fn)
}

// Attempt is Execute without its results.
func (c *Client) Attempt(fn func() (int, error)) { atomicbreaker.Execute(&c.breaker, fn) }

// CountContext is ExecuteContext.
func (c *Client) CountContext(ctx context.Context, fn func(context.Context) (int, error)) (int, error) {
	return atomicbreaker.ExecuteContext(ctx, &c.breaker, fn)
}

// Fetch is Execute of any result.
func Fetch[T any](c *Client, fn func() (T, error)) (T, error) {
	return atomicbreaker.Execute(&c.breaker, fn)
}

// FetchContext is ExecuteContext of any result.
func FetchContext[T any](ctx context.Context, c *Client, fn func(context.Context) (T, error)) (T, error) {
	return atomicbreaker.ExecuteContext(ctx, &c.breaker, fn)
}

// Retry is Execute in a loop.
func (c *Client) Retry(times int, fn func() (int, error)) (n int, err error) {
	for range times {
		n, err = atomicbreaker.Execute(&c.breaker, fn)
	}
	return n, err
}

// Finally is Execute in a deferred call.
func (c *Client) Finally(fn func() (int, error)) {
	defer atomicbreaker.Execute(&c.breaker, fn)
}

// Add is Execute of a closure.
func (c *Client) Add(sum *int, n int) (int, error) {
	return atomicbreaker.Execute(&c.breaker, func() (int, error) {
		*sum += n
		return *sum, nil
	})
}

// Protect returns fn behind Execute. A closure that is inlined with what returns
// it allocates; see internal/atomics/inline.go in the library.
func (c *Client) Protect(fn func(int) (int, error)) func(int) (int, error) {
	return func(n int) (int, error) {
		return atomicbreaker.Execute(&c.breaker, func() (int, error) { return fn(n) })
	}
}

// ProtectContext returns fn behind ExecuteContext, likewise.
func (c *Client) ProtectContext(fn func(context.Context, int) (int, error)) func(context.Context, int) (int, error) {
	return func(ctx context.Context, n int) (int, error) {
		return atomicbreaker.ExecuteContext(ctx, &c.breaker, func(ctx context.Context) (int, error) { return fn(ctx, n) })
	}
}

// Middleware returns next behind Execute.
func (c *Client) Middleware(next http.Handler) http.Handler { return middleware{c, next} }

type middleware struct {
	client *Client
	next   http.Handler
}

func (m middleware) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	atomicbreaker.Execute(&m.client.breaker, func() (struct{}, error) {
		m.next.ServeHTTP(w, r)
		return struct{}{}, nil
	})
}

// MiddlewareByHost returns next behind Group.Do.
func (c *Client) MiddlewareByHost(next http.Handler) http.Handler { return byHost{c, next} }

type byHost middleware

func (m byHost) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.client.hosts.Do(r.Context(), r.Host, func(context.Context) error {
		m.next.ServeHTTP(w, r)
		return nil
	})
}

// MiddlewareFunc returns next behind Breaker.Do, which has no type parameter, in
// a closure.
func (c *Client) MiddlewareFunc(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c.breaker.Do(r.Context(), func(context.Context) error {
			next(w, r)
			return nil
		})
	}
}

// Do is Breaker.Do.
func (c *Client) Do(ctx context.Context, fn func(context.Context) error) error {
	return c.breaker.Do(ctx, fn)
}

// DoThrottled is Throttle.Do.
func (c *Client) DoThrottled(ctx context.Context, fn func(context.Context) error) error {
	return c.throttle.Do(ctx, fn)
}

// DoHost is Group.Do with a string.
func (c *Client) DoHost(ctx context.Context, host string, fn func(context.Context) error) error {
	return c.hosts.Do(ctx, host, fn)
}

// DoShard is Group.Do with an int.
func (c *Client) DoShard(ctx context.Context, shard int, fn func(context.Context) error) error {
	return c.shards.Do(ctx, shard, fn)
}

// AskHost is Group.Allow with a string, and Permit.Success.
func (c *Client) AskHost(host string) bool {
	p, err := c.hosts.Allow(host)
	if err != nil {
		return false
	}
	p.Success()
	return true
}

// AskShard is Group.Allow with an int, and Permit.Success.
func (c *Client) AskShard(shard int) bool {
	p, err := c.shards.Allow(shard)
	if err != nil {
		return false
	}
	p.Success()
	return true
}

// DoKey is Group.Do with any key.
func DoKey[K comparable](ctx context.Context, g *atomicbreaker.Group[K], k K, fn func(context.Context) error) error {
	return g.Do(ctx, k, fn)
}
