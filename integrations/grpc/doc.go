// Package latchgrpc has gRPC interceptors for latchfree's breakers, throttles and
// retry budgets.
//
//	breakers := latchgrpc.MustNewBreakers(latchgrpc.BreakersConfig{})
//	retries := latchgrpc.MustNewRetries(latchgrpc.RetriesConfig{})
//
//	conn, err := grpc.NewClient(target,
//		grpc.WithChainUnaryInterceptor(retries.UnaryClient(), breakers.UnaryClient()),
//		grpc.WithChainStreamInterceptor(breakers.StreamClient()),
//	)
//
// Breakers and Throttles have four interceptors each: for unary calls and streams, of
// clients and servers. Retries has one, for unary calls of a client.
//
// # Rejections
//
// A call that is not admitted is not made. Its error has the status Unavailable, and
// matches the error of the breaker or throttle:
//
//	errors.Is(err, atomicbreaker.ErrRejected)
//
// A server sends the status. The client of that server gets Unavailable, and the match is
// lost on the wire.
//
// # When a call ends
//
// A unary call ends when the next interceptor, or the handler, returns. A stream of a server
// ends when its handler returns. A stream of a client ends when gRPC says so (see
// grpc.OnFinish): with the end of the stream, an error, the end of its context, or Close
// of the connection. A client that does none of these leaks the stream in gRPC too; a
// probe then loses its slot after Config.ProbeTimeout.
//
// If an interceptor within or a handler panics or calls runtime.Goexit, the call has
// failed, and the panic goes on with its stack. The functions of the configuration,
// and listeners of the breakers, may run in a goroutine of gRPC when a stream ends. A
// panic there ends the process.
package latchgrpc
