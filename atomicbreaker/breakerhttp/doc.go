// Package breakerhttp puts circuit breakers between HTTP clients and servers.
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
// Errors of the connection, deadlines that pass, panics, and answers with 5xx, apart from
// 501 and 505, are failures; see ClassifyResponse and ClassifyStatus. A failure with a
// Retry-After header opens a host's breaker for that time. What a caller or client is to
// blame for does not count; see TransportConfig.Classify and MiddlewareConfig.Classify.
//
// # When a call ends
//
// A request through a Transport ends with the header of its answer, or with the body if
// TransportConfig.WatchBody is set. A request through a Middleware ends when the handler
// returns or takes over the connection, as for a WebSocket.
//
// The outcome is reported once, also if Base, the handler, a listener or a function of
// the configuration panics or calls runtime.Goexit. Then the body of the answer, or a
// connection that was just taken over, is closed if the caller does not get it. A request
// that never ends is never reported; a probe's slot is free again after
// atomicbreaker.Config.ProbeTimeout.
//
// # Costs
//
// A request through a Transport allocates its key unless the URL has a port, and with
// WatchBody the wrapper of the body. One through a Middleware allocates the wrapper of its
// http.ResponseWriter, and its copy if it has a body.
//
// A request goes to Base unchanged if it has no body, or one that http.NewRequest has made
// of a bytes.Buffer, bytes.Reader or strings.Reader. Otherwise Base gets a copy whose body
// is wrapped, which is three allocations, and one more with GetBody. The wrapper can only
// read and close, so over HTTP/1 net/http copies in blocks of 32 KiB a body that it would
// have written by io.WriterTo or, of an *os.File, by the system.
package breakerhttp
