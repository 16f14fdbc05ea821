package latchgrpc_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/latchfree/latchfree/atomicbreaker"
)

var (
	errDown   = status.Error(codes.Unavailable, "down")
	errAbsent = status.Error(codes.NotFound, "absent")
)

const (
	getMethod  = "/test.Echo/Get"
	chatMethod = "/test.Echo/Chat"
	sumMethod  = "/test.Echo/Sum"
)

// echo is a service without generated code. Nil functions send back what they get.
type echo struct {
	get  func(context.Context, string) (string, error)
	chat func(grpc.ServerStream) error
	sum  func(grpc.ServerStream) error
}

var (
	chatDesc = grpc.StreamDesc{StreamName: "Chat", ClientStreams: true, ServerStreams: true}
	sumDesc  = grpc.StreamDesc{StreamName: "Sum", ClientStreams: true}
)

func (e *echo) register(s *grpc.Server) {
	chat, sum := chatDesc, sumDesc
	chat.Handler = func(_ any, ss grpc.ServerStream) error { return e.chat(ss) }
	sum.Handler = func(_ any, ss grpc.ServerStream) error { return e.sum(ss) }
	s.RegisterService(&grpc.ServiceDesc{
		ServiceName: "test.Echo",
		HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{MethodName: "Get", Handler: func(_ any, ctx context.Context, dec func(any) error, in grpc.UnaryServerInterceptor) (any, error) {
			req := new(wrapperspb.StringValue)
			if err := dec(req); err != nil {
				return nil, err
			}
			handle := func(ctx context.Context, req any) (any, error) {
				answer, err := e.get(ctx, req.(*wrapperspb.StringValue).Value)
				return wrapperspb.String(answer), err
			}
			if in == nil {
				return handle(ctx, req)
			}
			return in(ctx, req, &grpc.UnaryServerInfo{FullMethod: getMethod}, handle)
		}}},
		Streams: []grpc.StreamDesc{chat, sum},
	}, e)
}

// overBoth runs a test over loopback TCP and over memory.
func overBoth(t *testing.T, test func(t *testing.T, n network)) {
	t.Run("tcp", func(t *testing.T) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		test(t, network{l, l.Addr().String(), nil})
	})
	t.Run("bufconn", func(t *testing.T) {
		l := bufconn.Listen(1 << 16)
		test(t, network{l, "passthrough:///memory", grpc.WithContextDialer(
			func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) })})
	})
}

type network struct {
	listener net.Listener
	target   string
	dialer   grpc.DialOption
}

// serve starts the service and returns a connection to it.
func (n network) serve(t *testing.T, e *echo, server []grpc.ServerOption, client ...grpc.DialOption) *grpc.ClientConn {
	s := grpc.NewServer(server...)
	e.register(s)
	go s.Serve(n.listener)
	t.Cleanup(s.Stop)
	client = append(client, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if n.dialer != nil {
		client = append(client, n.dialer)
	}
	conn, err := grpc.NewClient(n.target, client...)
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn
}

func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func get(ctx context.Context, conn *grpc.ClientConn, text string) (string, error) {
	reply := new(wrapperspb.StringValue)
	err := conn.Invoke(ctx, getMethod, wrapperspb.String(text), reply)
	return reply.Value, err
}

func open(t *testing.T, ctx context.Context, conn *grpc.ClientConn) grpc.ClientStream {
	s, err := conn.NewStream(ctx, &chatDesc, chatMethod)
	require.NoError(t, err)
	return s
}

// halfOpen returns a breaker that opens at the first failure and is half-open.
func halfOpen() *atomicbreaker.Breaker {
	b := atomicbreaker.MustNew(atomicbreaker.Config{Policy: atomicbreaker.Consecutive(1), OpenTimeout: time.Hour})
	b.HalfOpen()
	return b
}

// comesToBe waits for what another goroutine does.
func comesToBe(t *testing.T, b *atomicbreaker.Breaker, state atomicbreaker.State) {
	t.Helper()
	require.Eventually(t, func() bool { s := b.Snapshot(); return s.State == state && s.InFlight == 0 },
		10*time.Second, time.Millisecond)
}

func assertRejected(t *testing.T, err error) {
	t.Helper()
	assert.ErrorIs(t, err, atomicbreaker.ErrRejected)
	assert.Equal(t, codes.Unavailable, status.Code(err))
}

const (
	soonest = 10 * time.Second
	tick    = time.Millisecond
)

func noCredentials() credentials.TransportCredentials { return insecure.NewCredentials() }
