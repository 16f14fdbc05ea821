package latchgrpc

import (
	"context"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
)

// interceptors are those of a gate.
type interceptors struct{ gate gate }

// UnaryClient returns the interceptor for unary calls of a client. A call whose context
// has ended is neither made nor counted.
func (i interceptors) UnaryClient() grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		if err := ctx.Err(); err != nil {
			return status.FromContextError(err).Err()
		}
		return unary(i.gate, ctx, cc.Target(), method, func() error {
			return invoker(ctx, method, req, reply, cc, opts...)
		})
	}
}

// StreamClient returns the interceptor for streams of a client. A stream whose context
// has ended is neither made nor counted.
func (i interceptors) StreamClient() grpc.StreamClientInterceptor {
	return func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		if err := ctx.Err(); err != nil {
			return nil, status.FromContextError(err).Err()
		}
		c, err := begin(i.gate, ctx, cc.Target(), method)
		if err != nil {
			return nil, err
		}
		returned := false
		defer c.unwind(&returned)
		// A copy: the caller may use the array behind opts for another call.
		opts = append(opts[:len(opts):len(opts)], grpc.OnFinish(c.end))
		s, err := streamer(ctx, desc, cc, method, opts...)
		returned = true
		if err != nil {
			c.end(err)
			return nil, err
		}
		return &clientStream{s, c, desc.ServerStreams}, nil
	}
}

// A clientStream sees messages, and ends that gRPC does not report because an
// interceptor within has dropped the options.
type clientStream struct {
	grpc.ClientStream
	call *call
	many bool // messages may come
}

// RecvMsg is that of the stream.
func (s *clientStream) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	switch {
	case err == io.EOF, err == nil && !s.many:
		s.call.end(nil)
	case err != nil:
		s.call.end(err)
	default:
		s.call.message()
	}
	return err
}

// UnaryServer returns the interceptor for unary calls of a server.
func (i interceptors) UnaryServer() grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (reply any, err error) {
		err = unary(i.gate, ctx, "", info.FullMethod, func() (err error) {
			reply, err = handler(ctx, req)
			return err
		})
		return reply, err
	}
}

// StreamServer returns the interceptor for streams of a server.
func (i interceptors) StreamServer() grpc.StreamServerInterceptor {
	return func(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		c, err := begin(i.gate, ss.Context(), "", info.FullMethod)
		if err != nil {
			return err
		}
		returned := false
		defer c.unwind(&returned)
		err = handler(srv, &serverStream{ss, c})
		returned = true
		c.end(err)
		return err
	}
}

// A serverStream sees messages.
type serverStream struct {
	grpc.ServerStream
	call *call
}

// SendMsg is that of the stream.
func (s *serverStream) SendMsg(m any) error {
	err := s.ServerStream.SendMsg(m)
	if err == nil {
		s.call.message()
	}
	return err
}
