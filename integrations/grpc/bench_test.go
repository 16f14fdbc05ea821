package latchgrpc_test

import (
	"context"
	"net"
	"testing"

	"github.com/sony/gobreaker/v2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/latchfree/latchfree/atomicbreaker"
	latchgrpc "github.com/latchfree/latchfree/integrations/grpc"
)

// peerClient is what a user of gobreaker writes: one breaker for all calls.
func peerClient(cb *gobreaker.CircuitBreaker[struct{}]) grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		_, err := cb.Execute(func() (struct{}, error) {
			return struct{}{}, invoker(ctx, method, req, reply, cc, opts...)
		})
		return err
	}
}

func clients() map[string]grpc.UnaryClientInterceptor {
	return map[string]grpc.UnaryClientInterceptor{
		"none":             nil,
		"breaker":          latchgrpc.MustNewBreakers(latchgrpc.BreakersConfig{Breaker: new(atomicbreaker.Breaker)}).UnaryClient(),
		"breakers":         latchgrpc.MustNewBreakers(latchgrpc.BreakersConfig{}).UnaryClient(),
		"throttle":         latchgrpc.MustNewThrottles(latchgrpc.ThrottlesConfig{}).UnaryClient(),
		"retries":          latchgrpc.MustNewRetries(latchgrpc.RetriesConfig{}).UnaryClient(),
		"retries+breakers": chain(latchgrpc.MustNewRetries(latchgrpc.RetriesConfig{}).UnaryClient(), latchgrpc.MustNewBreakers(latchgrpc.BreakersConfig{}).UnaryClient()),
		"gobreaker":        peerClient(gobreaker.NewCircuitBreaker[struct{}](gobreaker.Settings{})),
	}
}

// chain returns an interceptor that calls a, which calls b.
func chain(a, b grpc.UnaryClientInterceptor) grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		return a(ctx, method, req, reply, cc, func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, opts ...grpc.CallOption) error {
			return b(ctx, method, req, reply, cc, invoker, opts...)
		}, opts...)
	}
}

var order = []string{"none", "breaker", "breakers", "throttle", "retries", "retries+breakers", "gobreaker"}

// BenchmarkUnaryCall makes calls to one server over memory, with each interceptor.
func BenchmarkUnaryCall(b *testing.B) {
	l := bufconn.Listen(1 << 16)
	s := grpc.NewServer()
	(&echo{get: func(_ context.Context, text string) (string, error) { return text, nil }}).register(s)
	go s.Serve(l)
	defer s.Stop()
	all := clients()
	for _, name := range order {
		b.Run("interceptor="+name, func(b *testing.B) {
			opts := []grpc.DialOption{
				grpc.WithTransportCredentials(noCredentials()),
				grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }),
			}
			if i := all[name]; i != nil {
				opts = append(opts, grpc.WithUnaryInterceptor(i))
			}
			conn, err := grpc.NewClient("passthrough:///memory", opts...)
			if err != nil {
				b.Fatal(err)
			}
			defer conn.Close()
			ctx := context.Background()
			request, reply := wrapperspb.String("hello"), new(wrapperspb.StringValue)
			b.ReportAllocs()
			for b.Loop() {
				if err := conn.Invoke(ctx, getMethod, request, reply); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkInterceptor calls the interceptors alone: what they call returns at once. With
// state=open they reject the call.
func BenchmarkInterceptor(b *testing.B) {
	conn, err := grpc.NewClient("passthrough:///memory", grpc.WithTransportCredentials(noCredentials()))
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	ctx := context.Background()
	run := func(name string, i grpc.UnaryClientInterceptor, result error) {
		invoker := func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error { return result }
		b.Run(name+"/callers=one", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_ = i(ctx, getMethod, nil, nil, conn, invoker)
			}
		})
		b.Run(name+"/callers=parallel", func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					_ = i(ctx, getMethod, nil, nil, conn, invoker)
				}
			})
		})
	}
	all := clients()
	for _, name := range order[1:] {
		run("state=closed/interceptor="+name, all[name], nil)
	}
	open := new(atomicbreaker.Breaker)
	open.ForceOpen()
	run("state=open/interceptor=breaker", latchgrpc.MustNewBreakers(latchgrpc.BreakersConfig{Breaker: open}).UnaryClient(), nil)
	peer := gobreaker.NewCircuitBreaker[struct{}](gobreaker.Settings{Timeout: 1 << 40})
	for range 10 {
		_, _ = peer.Execute(func() (struct{}, error) { return struct{}{}, errDown })
	}
	run("state=open/interceptor=gobreaker", peerClient(peer), nil)
}
