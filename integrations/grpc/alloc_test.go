package latchgrpc_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	"github.com/latchfree/latchfree/atomicbreaker"
	latchgrpc "github.com/latchfree/latchfree/integrations/grpc"
)

// A unary call of a client allocates nothing but its key, and a rejection nothing but details.
func TestUnaryAllocs(t *testing.T) {
	conn, err := grpc.NewClient("passthrough:///nowhere", grpc.WithTransportCredentials(noCredentials()))
	require.NoError(t, err)
	defer conn.Close()
	open := new(atomicbreaker.Breaker)
	open.ForceOpen()
	detailed := atomicbreaker.MustNew(atomicbreaker.Config{DetailedErrors: true})
	detailed.ForceOpen()
	for name, tt := range map[string]struct {
		interceptor grpc.UnaryClientInterceptor
		want        float64
	}{
		"breaker":  {latchgrpc.MustNewBreakers(latchgrpc.BreakersConfig{Breaker: new(atomicbreaker.Breaker)}).UnaryClient(), 0},
		"breakers": {latchgrpc.MustNewBreakers(latchgrpc.BreakersConfig{}).UnaryClient(), 1},
		"throttle": {latchgrpc.MustNewThrottles(latchgrpc.ThrottlesConfig{}).UnaryClient(), 0},
		"open":     {latchgrpc.MustNewBreakers(latchgrpc.BreakersConfig{Breaker: open}).UnaryClient(), 0},
		"details":  {latchgrpc.MustNewBreakers(latchgrpc.BreakersConfig{Breaker: detailed}).UnaryClient(), 2},
	} {
		invoker := func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error { return nil }
		got := testing.AllocsPerRun(100, func() { _ = tt.interceptor(context.Background(), getMethod, nil, nil, conn, invoker) })
		assert.Equal(t, tt.want, got, name)
	}
}
