package breakerhttp

import (
	"context"
	"io"
	"net/http"

	"github.com/latchfree/latchfree/internal/atomics"
)

// An incoming is the body of a request as the handler gets it. It notes whether the
// call has failed because the client does not send the body, which says nothing about
// the handler.
//
// The handler gets a copy of the request, as the server examines the type of the body of
// its own when it answers.
type incoming struct {
	request  http.Request // the handler's
	original *http.Request
	body     io.ReadCloser
	context  context.Context

	reading     atomics.Int32 // Reads that began before the context had ended and have not returned
	interrupted atomics.Bool  // false → true by a Read during which the context has ended
	broken      atomics.Bool  // false → true by a Read that fails while the context lives
	closed      atomics.Bool  // false → true by the handler, before the body is closed
}

// watchIncoming returns the request that the handler gets in place of r, and what
// notes how its body is read. That is nil if there is no body.
func watchIncoming(r *http.Request) (*http.Request, *incoming) {
	if r.Body == nil || r.Body == http.NoBody {
		return r, nil
	}
	in := &incoming{request: *r, original: r, body: r.Body, context: r.Context()}
	in.request.Body = in
	return &in.request, in
}

// Read is the body's. Once the context has ended, an error says nothing: the server
// closes the bodies of requests that it has answered.
func (in *incoming) Read(p []byte) (int, error) {
	if in.context.Err() != nil {
		return in.body.Read(p)
	}
	in.reading.Add(1)
	defer in.reading.Add(-1)
	n, err := in.body.Read(p)
	switch {
	case in.context.Err() != nil:
		in.interrupted.Store(true)
	case err != nil && err != io.EOF && !in.closed.Load():
		in.broken.Store(true)
	}
	return n, err
}

func (in *incoming) Close() error {
	in.closed.Store(true)
	return in.body.Close()
}

// failed reports whether the body could not be read.
func (in *incoming) failed() bool { return in != nil && in.broken.Load() }

// cutOff reports whether the context has ended while the body was read. A Read that
// returns meanwhile notes that before it is no longer counted.
func (in *incoming) cutOff() bool {
	return in != nil && in.context.Err() != nil && (in.reading.Load() > 0 || in.interrupted.Load())
}

// handBack gives the original request what the handler has found out about its own.
// The server removes the files of a form.
func (in *incoming) handBack() {
	if in == nil {
		return
	}
	to, from := in.original, &in.request
	to.Pattern, to.Form, to.PostForm, to.MultipartForm = from.Pattern, from.Form, from.PostForm, from.MultipartForm
}
