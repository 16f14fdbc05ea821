package through

import (
	"context"
	"net/http"

	"example.com/consumer/shape"
	"example.com/consumer/wrapper"
)

func breakers() []shape.Shape {
	const host, shard = "db-001.example.com", 1 << 40
	ctx, n := context.Background(), 0
	count := func() (int, error) { n++; return n, nil }
	c, open := new(wrapper.Client), new(wrapper.Client)
	open.Open(host, shard)
	request, _ := http.NewRequestWithContext(ctx, "GET", "http://"+host, nil)
	next := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { n++ })
	middleware, byHost := c.Middleware(next), c.MiddlewareByHost(next)
	byFunc := c.MiddlewareFunc(next)
	rejecting, rejectingHost := open.Middleware(next), open.MiddlewareByHost(next)
	protected := c.Protect(func(m int) (int, error) { n += m; return n, nil })
	protectedContext := c.ProtectContext(func(_ context.Context, m int) (int, error) { n += m; return n, nil })
	return []shape.Shape{
		{"Allow, Success", 0, func() { c.Ask() }},
		{"Allow, Done", 0, func() { c.Report(nil) }},
		{"Allow, Failure, Allow, Success", 0, c.FailAndRecover},
		{"Execute", 0, func() { c.Count(func() (int, error) { n++; return n, nil }) }},
		{"Execute of a variable", 0, func() { c.Count(count) }},
		{"Execute without results", 0, func() { c.Attempt(func() (int, error) { n++; return n, nil }) }},
		{"Execute of a closure that captures much", 0, func() {
			a, b, d := n, ctx, host
			c.Count(func() (int, error) { n += a + len(d); return n, b.Err() })
		}},
		{"Execute in the caller's loop", 0, func() {
			for i := range 3 {
				c.Count(func() (int, error) { n += i; return n, nil })
			}
		}},
		{"Execute in the wrapper's loop", 0, func() { c.Retry(3, func() (int, error) { n++; return n, nil }) }},
		{"Execute deferred by the caller", 0, func() { defer c.Count(func() (int, error) { n++; return n, nil }) }},
		{"Execute deferred by the wrapper", 0, func() { c.Finally(func() (int, error) { n++; return n, nil }) }},
		{"Execute in Execute", 0, func() {
			c.Count(func() (int, error) { return c.Count(func() (int, error) { n++; return n, nil }) })
		}},
		{"Execute of the wrapper's closure", 0, func() { c.Add(&n, 1) }},
		{"Execute in a closure of the wrapper's: the closure in it", 1, func() { protected(1) }},
		{"Execute in middleware", 0, func() { middleware.ServeHTTP(nil, request) }},
		{"Execute of any result", 0, func() { wrapper.Fetch(c, func() (string, error) { n++; return host, nil }) }},
		{"ExecuteContext", 0, func() {
			c.CountContext(ctx, func(context.Context) (int, error) { n++; return n, nil })
		}},
		{"ExecuteContext in a closure of the wrapper's: the closure in it", 1, func() { protectedContext(ctx, 1) }},
		{"ExecuteContext of any result", 0, func() {
			wrapper.FetchContext(ctx, c, func(context.Context) (string, error) { n++; return host, nil })
		}},
		{"Do in a closure of the wrapper's", 0, func() { byFunc(nil, request) }},
		{"Do", 0, func() { c.Do(ctx, func(context.Context) error { n++; return nil }) }},
		{"Throttle.Do", 0, func() { c.DoThrottled(ctx, func(context.Context) error { n++; return nil }) }},
		{"Group.Do, a string", 0, func() { c.DoHost(ctx, host, func(context.Context) error { n++; return nil }) }},
		{"Group.Do, an int", 0, func() { c.DoShard(ctx, shard, func(context.Context) error { n++; return nil }) }},
		{"Group.Do in middleware", 0, func() { byHost.ServeHTTP(nil, request) }},
		{"Group.Allow, Success, a string", 0, func() { c.AskHost(host) }},
		{"Group.Allow, Success, an int", 0, func() { c.AskShard(shard) }},
		{"Allow, rejected", 0, func() { open.Ask() }},
		{"Execute, rejected", 0, func() { open.Count(func() (int, error) { n++; return n, nil }) }},
		{"Execute in middleware, rejected", 0, func() { rejecting.ServeHTTP(nil, request) }},
		{"ExecuteContext, rejected", 0, func() {
			open.CountContext(ctx, func(context.Context) (int, error) { n++; return n, nil })
		}},
		{"Do, rejected", 0, func() { open.Do(ctx, func(context.Context) error { n++; return nil }) }},
		{"Group.Allow, rejected", 0, func() { open.AskHost(host) }},
		{"Group.Do, a string, rejected", 0, func() { open.DoHost(ctx, host, func(context.Context) error { n++; return nil }) }},
		{"Group.Do, an int, rejected", 0, func() { open.DoShard(ctx, shard, func(context.Context) error { n++; return nil }) }},
		{"Group.Do in middleware, rejected", 0, func() { rejectingHost.ServeHTTP(nil, request) }},
	}
}
