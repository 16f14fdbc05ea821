// Package breakerhttp puts circuit breakers between HTTP clients and servers.
// It needs net/http and nothing else.
//
// A Transport is an http.RoundTripper with a breaker for each host:
//
//	client := &http.Client{Transport: new(breakerhttp.Transport)}
//
//	resp, err := client.Get(url)
//	if errors.Is(err, atomicbreaker.ErrRejected) {
//		return cached(url) // nothing was sent
//	}
//
// A Middleware is its counterpart for handlers, with a breaker for each route:
//
//	var breakers breakerhttp.Middleware
//	mux.Handle("GET /search", breakers.Handler(search))
//
// # What counts
//
// Transport: errors of the connection, deadlines that pass before the answer
// is there, and answers with 5xx, apart from 501 and 505, are failures. All
// other answers are successes: a server that refuses a request works. Requests that
// say nothing about the host do not count:
//
//   - An answer with 429. The host limits one client and works for others, and its
//     Retry-After must not shut these out. If the keys separate the clients that
//     the host limits, TransportConfig.CountTooManyRequests makes it a failure.
//   - A request whose context its caller has cancelled. The older
//     http.Request.Cancel cannot be told from an http.Client.Timeout, so both are
//     failures.
//   - A request without an answer whose own body could not be read, or is longer or
//     shorter than the request says.
//   - A request that net/http did not send because it is invalid.
//
// A failure with a Retry-After header opens the breaker at once for that time, up to
// TransportConfig.MaxRetryAfter, which by default is the time for which a breaker
// opens first.
//
// Middleware: answers with 5xx, apart from 501 and 505, are failures. So are panics,
// and requests whose context has ended at its deadline, as within an
// http.TimeoutHandler, whatever the handler answers then. See ClassifyStatus. Requests
// that say nothing about the handler do not count:
//
//   - A request whose client has gone.
//   - A request whose body could not be read before there was an answer.
//   - A request whose context has ended while the handler was reading the body.
//
// # When a call ends
//
// A request through a Transport ends with the header of its answer, or with
// that of its body if TransportConfig.WatchBody is set. A request through a
// Middleware ends when the handler has returned, or when it has taken over the
// connection, as for a WebSocket. The latter is a success, as an answer with 101, and
// the rest of the connection and of the handler is not part of the call.
//
// The outcome is reported once, also if Base, the handler, a listener or a function
// of the configuration panics or calls runtime.Goexit. Then the body of the answer,
// or a connection that was just taken over, is closed if the caller does not get it. A
// request that never ends is never reported. If it was a probe, its slot is free again
// after Config.ProbeTimeout of package atomicbreaker.
//
// # Settings
//
// The settings of a Transport or Middleware never change. Transport.Group and
// Middleware.Group give access to the breakers while requests run: to read them, set
// them by hand, and change their settings by Update.
//
// # Costs
//
// A request through a Transport allocates its key unless the URL has a port,
// and with WatchBody the body's wrapper. One through a Middleware allocates the
// wrapper of its http.ResponseWriter, and its copy if it has a body. The breaker
// itself costs little beside that; see package atomicbreaker.
//
// A request with a body goes to Base unchanged if http.NewRequest has made the body of
// a bytes.Buffer, bytes.Reader or strings.Reader. Any other
// body is watched: Base gets a copy of the request with a wrapper around the
// body, which is three allocations, and one more with GetBody. The wrapper can
// read and close and nothing else. So over HTTP/1, net/http copies a body in
// blocks of 32 KiB that otherwise would have been written by its io.WriterTo, or
// as an *os.File by the system.
package breakerhttp
