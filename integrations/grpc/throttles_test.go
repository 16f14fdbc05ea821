package latchgrpc_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/latchfree/latchfree/atomicbreaker/throttle"
	latchgrpc "github.com/latchfree/latchfree/integrations/grpc"
)

func TestThrottles(t *testing.T) {
	overBoth(t, func(t *testing.T, n network) {
		th := throttle.MustNew(throttle.Config{Window: time.Hour, MinRequests: 10})
		throttles := latchgrpc.MustNewThrottles(latchgrpc.ThrottlesConfig{Throttle: th})
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
		assert.Equal(t, 2, th.Snapshot().Accepts)
		s := open(t, soon(t), conn)
		assert.Equal(t, 2, th.Snapshot().Accepts)
		require.NoError(t, s.RecvMsg(new(wrapperspb.StringValue)))
		assert.Equal(t, 3, th.Snapshot().Accepts, "a stream is accepted before it ends")
		answer = errDown
		get(soon(t), conn, "a")
		assert.Equal(t, 3, th.Snapshot().Accepts)
		assert.Equal(t, 4, th.Snapshot().Requests)
	})
}

func TestThrottleServerRejects(t *testing.T) {
	th := throttle.MustNew(throttle.Config{Window: time.Millisecond * 100, MinRequests: 1})
	throttles := latchgrpc.MustNewThrottles(latchgrpc.ThrottlesConfig{Throttle: th})
	require.Eventually(t, func() bool { // the odds are never 1
		_, err := throttles.UnaryServer()(context.Background(), nil, &grpc.UnaryServerInfo{}, func(context.Context, any) (any, error) { return nil, errDown })
		if err == errDown {
			return false
		}
		assertRejected(t, err)
		assert.ErrorIs(t, err, throttle.ErrRejected)
		return true
	}, soonest, tick)

	th = new(throttle.Throttle)
	throttles = latchgrpc.MustNewThrottles(latchgrpc.ThrottlesConfig{Throttle: th})
	throttles.StreamServer()(nil, sendingStream{}, &grpc.StreamServerInfo{}, func(_ any, ss grpc.ServerStream) error {
		require.Zero(t, th.Snapshot().Accepts)
		ss.SendMsg(nil)
		assert.Equal(t, 1, th.Snapshot().Accepts)
		return nil
	})
	assert.Equal(t, 1, th.Snapshot().Accepts)
}

type sendingStream struct{ idleStream }

func (sendingStream) SendMsg(any) error { return nil }
