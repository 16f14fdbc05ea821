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
// is there, and answers with 429 or 5xx, apart from 501 and 505, are failures.
// All other answers are successes: a server that refuses a request works. A
// request that its caller has cancelled counts as nothing. See
// ClassifyResponse.
//
// Middleware: answers with 5xx, apart from 501 and 505, and panics are
// failures. A request whose client has gone counts as nothing. See
// ClassifyStatus.
//
// # When a call ends
//
// A request through a Transport ends with the header of its answer, or with
// that of its body if TransportConfig.WatchBody is set. A request through a
// Middleware ends when the handler has returned.
//
// Its outcome is reported once, also if Base, the handler or a function of the
// configuration panics or calls runtime.Goexit. A request that never ends is
// never reported. If it was a probe, its slot is free again after
// Config.ProbeTimeout of package atomicbreaker, and it is late.
//
// # Costs
//
// A request through a Transport allocates its key unless the URL has a port,
// and with WatchBody the body's wrapper. One through a Middleware allocates the
// wrapper of its http.ResponseWriter. What the breaker does is nothing beside
// that; see package atomicbreaker.
package breakerhttp
