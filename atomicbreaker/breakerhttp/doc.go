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
// Errors of the connection, deadlines that pass, panics, and answers with 5xx are failures;
// see ClassifyResponse and ClassifyStatus. A failure with a Retry-After header opens a host's
// breaker for that time. What a caller or client is to blame for is Ignored; see
// TransportConfig.Classify and MiddlewareConfig.Classify.
//
// The outcome is reported once, also if Base, the handler, a listener or a function of the
// configuration panics or calls runtime.Goexit. Then the body of the answer, or a connection
// that was just taken over, is closed if the caller does not get it. A request that never
// ends is never reported; a probe's slot is free again after
// atomicbreaker.Config.ProbeTimeout.
//
// # Costs
//
// A request through a Transport allocates its key unless the URL has a port, and with
// WatchBody the wrapper of the body. One through a Middleware allocates the wrapper of its
// http.ResponseWriter, and its copy if it has a body.
//
// A request goes to Base unchanged if it has no body, or one that http.NewRequest has made
// of a bytes.Buffer, bytes.Reader or strings.Reader. Otherwise Base gets a copy, in three
// allocations, whose body can read and close and nothing else: over HTTP/1 no io.WriterTo
// is used, and no file is sent by the system.
package breakerhttp
