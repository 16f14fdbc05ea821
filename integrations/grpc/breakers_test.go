package latchgrpc_test

import (
	"context"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/latchfree/latchfree/atomicbreaker"
	latchgrpc "github.com/latchfree/latchfree/integrations/grpc"
)

func of(b *atomicbreaker.Breaker) *latchgrpc.Breakers {
	return latchgrpc.MustNewBreakers(latchgrpc.BreakersConfig{Breaker: b})
}

func TestUnaryClient(t *testing.T) {
	overBoth(t, func(t *testing.T, n network) {
		breakers := latchgrpc.MustNewBreakers(latchgrpc.BreakersConfig{})
		answer := error(nil)
		calls := 0
		e := &echo{get: func(_ context.Context, s string) (string, error) { calls++; return s, answer }}
		conn := n.serve(t, e, nil, grpc.WithUnaryInterceptor(breakers.UnaryClient()))
		got, err := get(soon(t), conn, "a")
		require.NoError(t, err)
		assert.Equal(t, "a", got)
		answer = errAbsent
		for range 10 { // refusals are no failures
			_, err = get(soon(t), conn, "a")
			assert.Equal(t, codes.NotFound, status.Code(err))
		}
		key := conn.Target() + getMethod
		assert.Equal(t, atomicbreaker.Closed, breakers.Group().State(key))
		answer = errDown
		for range 5 {
			_, err = get(soon(t), conn, "a")
			assert.Equal(t, codes.Unavailable, status.Code(err))
			assert.NotErrorIs(t, err, atomicbreaker.ErrRejected)
		}
		assert.Equal(t, atomicbreaker.Open, breakers.Group().State(key))
		made := calls
		_, err = get(soon(t), conn, "a")
		assertRejected(t, err)
		assert.ErrorIs(t, err, atomicbreaker.ErrOpen)
		assert.Equal(t, made, calls)
		assert.Equal(t, atomicbreaker.Closed, breakers.Group().State(conn.Target()+"/other"))
	})
}

func TestUnaryServer(t *testing.T) {
	overBoth(t, func(t *testing.T, n network) {
		b := halfOpen()
		answer := error(nil)
		e := &echo{get: func(_ context.Context, s string) (string, error) { return s, answer }}
		conn := n.serve(t, e, []grpc.ServerOption{grpc.UnaryInterceptor(of(b).UnaryServer())})
		reply, err := get(soon(t), conn, "a")
		require.NoError(t, err)
		assert.Equal(t, "a", reply)
		assert.Equal(t, atomicbreaker.Closed, b.State())
		answer = errors.New("a handler's error, which is Unknown to clients")
		_, err = get(soon(t), conn, "a")
		assert.Equal(t, codes.Unknown, status.Code(err))
		assert.Equal(t, atomicbreaker.Open, b.State())
		_, err = get(soon(t), conn, "a")
		assert.Equal(t, codes.Unavailable, status.Code(err))
		assert.Equal(t, atomicbreaker.ErrOpen.Error(), status.Convert(err).Message())
	})
}

// TestUnaryUnwinds covers panics and Goexit of handlers and inner interceptors.
func TestUnaryUnwinds(t *testing.T) {
	conn, err := grpc.NewClient("passthrough:///nowhere", grpc.WithTransportCredentials(noCredentials()))
	require.NoError(t, err)
	defer conn.Close()
	server := func(b *atomicbreaker.Breaker, f func()) {
		of(b).UnaryServer()(context.Background(), nil, &grpc.UnaryServerInfo{}, func(context.Context, any) (any, error) { f(); return nil, nil })
	}
	client := func(b *atomicbreaker.Breaker, f func()) {
		of(b).UnaryClient()(context.Background(), "/m", nil, nil, conn,
			func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error { f(); return nil })
	}
	streamServer := func(b *atomicbreaker.Breaker, f func()) {
		of(b).StreamServer()(nil, idleStream{}, &grpc.StreamServerInfo{}, func(any, grpc.ServerStream) error { f(); return nil })
	}
	streamClient := func(b *atomicbreaker.Breaker, f func()) {
		of(b).StreamClient()(context.Background(), &chatDesc, conn, "/m",
			func(context.Context, *grpc.StreamDesc, *grpc.ClientConn, string, ...grpc.CallOption) (grpc.ClientStream, error) {
				f()
				return nil, io.ErrUnexpectedEOF
			})
	}
	for name, run := range map[string]func(*atomicbreaker.Breaker, func()){"unary-server": server, "unary-client": client, "stream-server": streamServer, "stream-client": streamClient} {
		t.Run(name, func(t *testing.T) {
			b := halfOpen()
			assert.PanicsWithValue(t, "oops", func() { run(b, func() { panic("oops") }) })
			comesToBe(t, b, atomicbreaker.Open)
			b = halfOpen()
			done := make(chan struct{})
			go func() { defer close(done); run(b, runtime.Goexit) }()
			<-done
			comesToBe(t, b, atomicbreaker.Open)
		})
	}
}

type idleStream struct{ grpc.ServerStream }

func (idleStream) Context() context.Context { return context.Background() }

func TestStreamClient(t *testing.T) {
	overBoth(t, func(t *testing.T, n network) {
		b := halfOpen()
		end := make(chan error)
		e := &echo{chat: func(ss grpc.ServerStream) error {
			ss.SendMsg(wrapperspb.String("hello"))
			select {
			case err := <-end:
				return err
			case <-ss.Context().Done():
				return ss.Context().Err()
			}
		}, sum: func(ss grpc.ServerStream) error {
			for ss.RecvMsg(new(wrapperspb.StringValue)) == nil {
			}
			return ss.SendMsg(wrapperspb.String("sum"))
		}}
		conn := n.serve(t, e, nil, grpc.WithStreamInterceptor(of(b).StreamClient()))
		m := new(wrapperspb.StringValue)

		s := open(t, soon(t), conn)
		require.NoError(t, s.RecvMsg(m))
		assert.Equal(t, 1, b.Snapshot().InFlight, "the stream goes on")
		_, err := conn.NewStream(soon(t), &chatDesc, chatMethod)
		assertRejected(t, err)
		assert.ErrorIs(t, err, atomicbreaker.ErrTooManyProbes)
		end <- nil
		assert.Equal(t, io.EOF, s.RecvMsg(m))
		assert.Equal(t, atomicbreaker.Closed, b.State())

		b.HalfOpen() // a client's stream has one answer and then no EOF
		sum, err := conn.NewStream(soon(t), &sumDesc, sumMethod)
		require.NoError(t, err)
		require.NoError(t, sum.SendMsg(m))
		require.NoError(t, sum.CloseSend())
		require.NoError(t, sum.RecvMsg(m))
		assert.Equal(t, atomicbreaker.Closed, b.State())

		b.HalfOpen()
		s = open(t, soon(t), conn)
		require.NoError(t, s.RecvMsg(m))
		end <- errDown
		assert.Equal(t, codes.Unavailable, status.Code(s.RecvMsg(m)))
		assert.Equal(t, atomicbreaker.Open, b.State())

		b.HalfOpen() // abandoned: nobody receives any more
		ctx, cancel := context.WithCancel(soon(t))
		s = open(t, ctx, conn)
		require.NoError(t, s.RecvMsg(m))
		require.Equal(t, 1, b.Snapshot().InFlight)
		cancel()
		comesToBe(t, b, atomicbreaker.HalfOpen)

		ctx, cancel = context.WithTimeout(soon(t), 0) // ended before
		defer cancel()
		_, err = conn.NewStream(ctx, &chatDesc, chatMethod)
		assert.Equal(t, codes.DeadlineExceeded, status.Code(err))
		comesToBe(t, b, atomicbreaker.HalfOpen)

		s = open(t, context.Background(), conn) // abandoned, and without an end
		require.NoError(t, s.RecvMsg(m))
		require.Equal(t, 1, b.Snapshot().InFlight)
		conn.Close()
		require.Eventually(t, func() bool { return b.Snapshot().InFlight == 0 }, soonest, tick)
	})
}

func TestStreamServer(t *testing.T) {
	overBoth(t, func(t *testing.T, n network) {
		b := halfOpen()
		e := &echo{chat: func(ss grpc.ServerStream) error {
			m := new(wrapperspb.StringValue)
			for {
				err := ss.RecvMsg(m)
				if err == io.EOF {
					return nil
				}
				if err != nil {
					return err
				}
				if m.Value == "fail" {
					return errDown
				}
				ss.SendMsg(m)
			}
		}}
		conn := n.serve(t, e, []grpc.ServerOption{grpc.StreamInterceptor(of(b).StreamServer())})
		m := new(wrapperspb.StringValue)

		ctx, cancel := context.WithCancel(soon(t))
		s := open(t, ctx, conn)
		require.NoError(t, s.SendMsg(m))
		require.NoError(t, s.RecvMsg(m))
		require.Equal(t, 1, b.Snapshot().InFlight)
		cancel() // the client has gone
		comesToBe(t, b, atomicbreaker.HalfOpen)

		s = open(t, soon(t), conn)
		require.NoError(t, s.CloseSend())
		assert.Equal(t, io.EOF, s.RecvMsg(m))
		comesToBe(t, b, atomicbreaker.Closed)

		s = open(t, soon(t), conn)
		require.NoError(t, s.SendMsg(wrapperspb.String("fail")))
		assert.Equal(t, codes.Unavailable, status.Code(s.RecvMsg(m)))
		comesToBe(t, b, atomicbreaker.Open)
		s = open(t, soon(t), conn)
		err := s.RecvMsg(m)
		assert.Equal(t, codes.Unavailable, status.Code(err))
		assert.True(t, strings.Contains(err.Error(), atomicbreaker.ErrOpen.Error()))
	})
}

// TestInnerInterceptorDropsOptions: grpc.OnFinish does not arrive, and messages tell.
func TestInnerInterceptorDropsOptions(t *testing.T) {
	overBoth(t, func(t *testing.T, n network) {
		b := halfOpen()
		e := &echo{chat: func(grpc.ServerStream) error { return errDown }}
		drop := func(ctx context.Context, d *grpc.StreamDesc, cc *grpc.ClientConn, m string, next grpc.Streamer, _ ...grpc.CallOption) (grpc.ClientStream, error) {
			return next(ctx, d, cc, m)
		}
		conn := n.serve(t, e, nil, grpc.WithChainStreamInterceptor(of(b).StreamClient(), drop))
		assert.Error(t, open(t, soon(t), conn).RecvMsg(new(wrapperspb.StringValue)))
		assert.Equal(t, atomicbreaker.Open, b.State())
	})
}

// TestClassifyPanics: the call has failed, and its slot is free.
func TestClassifyPanics(t *testing.T) {
	b := halfOpen()
	breakers := latchgrpc.MustNewBreakers(latchgrpc.BreakersConfig{Breaker: b,
		Classify: func(context.Context, error) atomicbreaker.Outcome { panic("oops") }})
	assert.PanicsWithValue(t, "oops", func() {
		breakers.UnaryServer()(context.Background(), nil, &grpc.UnaryServerInfo{}, func(context.Context, any) (any, error) { return nil, nil })
	})
	comesToBe(t, b, atomicbreaker.Open)
}

func TestKeyAndGroup(t *testing.T) {
	group := atomicbreaker.MustNewGroup(atomicbreaker.GroupConfig[string]{Default: atomicbreaker.Config{Policy: atomicbreaker.Consecutive(1)}})
	breakers := latchgrpc.MustNewBreakers(latchgrpc.BreakersConfig{Group: group,
		Key: func(_ context.Context, target, method string) string { return "[" + target + "|" + method + "]" }})
	breakers.UnaryServer()(context.Background(), nil, &grpc.UnaryServerInfo{FullMethod: "/m"}, func(context.Context, any) (any, error) { return nil, errDown })
	assert.Same(t, group, breakers.Group())
	assert.Equal(t, atomicbreaker.Open, group.State("[|/m]"))
}

func TestBreakersConfig(t *testing.T) {
	b := new(atomicbreaker.Breaker)
	_, err := latchgrpc.NewBreakers(latchgrpc.BreakersConfig{Breaker: b, Group: new(atomicbreaker.Group[string])})
	assert.EqualError(t, err, "latchgrpc: BreakersConfig.Group: must be nil with Breaker")
	_, err = latchgrpc.NewBreakers(latchgrpc.BreakersConfig{Breaker: b, Key: latchgrpc.MethodKey})
	assert.EqualError(t, err, "latchgrpc: BreakersConfig.Key: must be nil with Breaker")
	assert.Panics(t, func() { latchgrpc.MustNewBreakers(latchgrpc.BreakersConfig{Breaker: b, Key: latchgrpc.MethodKey}) })
	assert.Nil(t, of(b).Group())
}
