package latchgrpc_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/latchfree/latchfree/atomicbreaker"
	latchgrpc "github.com/latchfree/latchfree/integrations/grpc"
)

func TestThrottles(t *testing.T) {
	overBoth(t, func(t *testing.T, n network) {
		throttle := atomicbreaker.MustNewThrottle(atomicbreaker.ThrottleConfig{Window: time.Hour, MinRequests: 10})
		throttles := latchgrpc.MustNewThrottles(latchgrpc.ThrottlesConfig{Throttle: throttle})
		answer := error(nil)
		e := &echo{get: func(_ context.Context, s string) (string, error) { return s, answer },
			chat: func(ss grpc.ServerStream) error {
				ss.SendMsg(wrapperspb.String("hello"))
				<-ss.Context().Done()
				return ss.Context().Err()
			}}
		conn := n.serve(t, e, nil, grpc.WithUnaryInterceptor(throttles.UnaryClient()), grpc.WithStreamInterceptor(throttles.StreamClient()))
		get(soon(t), conn, "a")
		answer = errAbsent
		get(soon(t), conn, "a")
		assert.Equal(t, 2, throttle.Snapshot().Accepts)
		s := open(t, soon(t), conn)
		assert.Equal(t, 2, throttle.Snapshot().Accepts)
		require.NoError(t, s.RecvMsg(new(wrapperspb.StringValue)))
		assert.Equal(t, 3, throttle.Snapshot().Accepts, "a stream is accepted before it ends")
		answer = errDown
		get(soon(t), conn, "a")
		assert.Equal(t, 3, throttle.Snapshot().Accepts)
		assert.Equal(t, 4, throttle.Snapshot().Requests)
	})
}

func TestThrottleServerRejects(t *testing.T) {
	throttle := atomicbreaker.MustNewThrottle(atomicbreaker.ThrottleConfig{Window: time.Millisecond * 100, MinRequests: 1})
	throttles := latchgrpc.MustNewThrottles(latchgrpc.ThrottlesConfig{Throttle: throttle})
	require.Eventually(t, func() bool { // the odds are never 1
		_, err := throttles.UnaryServer()(context.Background(), nil, &grpc.UnaryServerInfo{}, func(context.Context, any) (any, error) { return nil, errDown })
		if err == errDown {
			return false
		}
		assertRejected(t, err)
		assert.ErrorIs(t, err, atomicbreaker.ErrThrottled)
		return true
	}, soonest, tick)

	throttle = new(atomicbreaker.Throttle)
	throttles = latchgrpc.MustNewThrottles(latchgrpc.ThrottlesConfig{Throttle: throttle})
	throttles.StreamServer()(nil, sendingStream{}, &grpc.StreamServerInfo{}, func(_ any, ss grpc.ServerStream) error {
		require.Zero(t, throttle.Snapshot().Accepts)
		ss.SendMsg(nil)
		assert.Equal(t, 1, throttle.Snapshot().Accepts)
		return nil
	})
	assert.Equal(t, 1, throttle.Snapshot().Accepts)
}

type sendingStream struct{ idleStream }

func (sendingStream) SendMsg(any) error { return nil }
