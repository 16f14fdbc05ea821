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
// other answers are successes: a server that refuses a request works. What says
// nothing about the host counts as nothing:
//
//   - An answer with 429. The host limits one client and works for others,
//     which its Retry-After is not to shut out. Where the keys tell apart whom
//     it limits, TransportConfig.CountTooManyRequests makes it a failure.
//   - A request whose context its caller has cancelled. The older
//     http.Request.Cancel does not tell that from an http.Client.Timeout, which
//     is a failure, so it is one too.
//   - A request whose own body could not be read, or is longer or shorter than
//     the request says, if no answer came back.
//   - A request that was not sent, as net/http says that it is invalid.
//
// A failure with a Retry-After header opens the breaker at once for as long as
// that says, up to TransportConfig.MaxRetryAfter. That is as long as a breaker
// that has opened for the first time stays open, unless it is set.
//
// Middleware: answers with 5xx, apart from 501 and 505, are failures, and so
// are panics, and requests whose context has ended at its deadline, as it does
// within an http.TimeoutHandler, whatever the handler answers then. A request
// whose client has gone counts as nothing. See ClassifyStatus.
//
// # When a call ends
//
// A request through a Transport ends with the header of its answer, or with
// that of its body if TransportConfig.WatchBody is set. A request through a
// Middleware ends when the handler has returned, or when it has taken over the
// connection, as for a WebSocket: that is a success, as an answer with 101, and
// what becomes of the connection, or of the handler, is not part of the call.
//
// Its outcome is reported once, also if Base, the handler, a listener or a
// function of the configuration panics or calls runtime.Goexit. Nothing stays
// open then that the caller does not get: the body of the answer is closed, and
// a connection that was just taken over. A request that never ends is never
// reported. If it was a probe, its slot is free again after Config.ProbeTimeout
// of package atomicbreaker.
//
// # Settings
//
// Those of a Transport or Middleware never change. Their breakers are looked at,
// set by hand and given other settings while requests run through
// Transport.Group and Middleware.Group, whose Update does the last.
//
// # Costs
//
// A request through a Transport allocates its key unless the URL has a port,
// and with WatchBody the body's wrapper. One through a Middleware allocates the
// wrapper of its http.ResponseWriter. What the breaker does is nothing beside
// that; see package atomicbreaker. An error in place of an answer takes some
// 4 µs, to find out whether the request was sent.
//
// A request with a body goes to Base as it is if it has that from
// http.NewRequest and a bytes.Buffer, bytes.Reader or strings.Reader. Any other
// body is watched: Base gets a copy of the request with a wrapper around the
// body, which is three allocations, and one more with GetBody. The wrapper can
// read and close and nothing else. So over HTTP/1, net/http copies a body in
// blocks of 32 KiB that otherwise would have been written by its io.WriterTo, or
// as an *os.File by the system.
package breakerhttp
