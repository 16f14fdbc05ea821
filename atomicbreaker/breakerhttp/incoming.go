package breakerhttp

import (
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
	request  http.Request  // the handler's, with this body
	original *http.Request // with the server's body
	body     io.ReadCloser

	reading atomics.Int32 // Reads that began, and did not return, before the context had ended
	broken  atomics.Bool  // false → true by a Read that fails while the context lives
	closed  atomics.Bool  // false → true by the handler, before the body is closed
}

// watchIncoming returns the request that the handler gets in place of r, and what
// notes how its body is read. That is nil if there is no body.
func watchIncoming(r *http.Request) (*http.Request, *incoming) {
	if r.Body == nil || r.Body == http.NoBody {
		return r, nil
	}
	in := &incoming{request: *r, original: r, body: r.Body}
	in.request.Body = in
	return &in.request, in
}

// Read is the body's. Once the context has ended, an error says nothing: the server
// closes the bodies of requests that it has answered.
func (in *incoming) Read(p []byte) (int, error) {
	if in.ended() {
		return in.body.Read(p)
	}
	in.reading.Add(1)
	n, err := in.body.Read(p)
	if in.ended() {
		return n, err
	}
	if err != nil && err != io.EOF && !in.closed.Load() {
		in.broken.Store(true)
	}
	in.reading.Add(-1)
	return n, err
}

// ended reports whether the context of the server's request has ended. The handler may
// have written another to its own.
func (in *incoming) ended() bool { return in.original.Context().Err() != nil }

func (in *incoming) Close() error {
	in.closed.Store(true)
	return in.body.Close()
}

// failed reports whether the body could not be read.
func (in *incoming) failed() bool { return in != nil && in.broken.Load() }

// cutOff reports whether the context has ended while the body was read.
func (in *incoming) cutOff() bool { return in != nil && in.ended() && in.reading.Load() > 0 }

// handBack gives the original request what the handler has found out about its own.
// The server removes the files of a form.
func (in *incoming) handBack() {
	if in == nil {
		return
	}
	to, from := in.original, &in.request
	to.Pattern, to.Form, to.PostForm, to.MultipartForm = from.Pattern, from.Form, from.PostForm, from.MultipartForm
}
