package breakerhttp

import (
	"bytes"
	"io"
	"net/http"
	"reflect"
	"strings"

	"github.com/latchfree/latchfree/internal/atomics"
)

// An upload notes whether a request to a host failed by its own body, which says nothing
// about the host.
type upload struct {
	length int64        // what the request says, not known if it is zero or less
	broken atomics.Bool // false → true by a reader of a body of the request, maybe after RoundTrip
}

// failed reports whether the request's own body has failed.
func (u *upload) failed() bool { return u != nil && u.broken.Load() }

// watchUpload returns the request that Base gets in place of req, which a RoundTripper must
// not change, and the upload that notes errors of its body. A request without a body, or
// with a body in memory, is passed unchanged: such a body cannot fail, and net/http would
// send the header in a packet of its own if it did not see the type of the body.
func watchUpload(req *http.Request) (*http.Request, *upload) {
	if req.Body == nil || req.Body == http.NoBody || inMemory(req) {
		return req, nil
	}
	u, sent := &upload{length: req.ContentLength}, req.WithContext(req.Context())
	sent.Body = &uploadBody{ReadCloser: req.Body, upload: u}
	if req.GetBody != nil {
		sent.GetBody = func() (io.ReadCloser, error) {
			body, err := req.GetBody()
			if err != nil {
				u.broken.Store(true)
				return body, err
			}
			return &uploadBody{ReadCloser: body, upload: u}, nil
		}
	}
	return sent, u
}

// inMemory reports whether http.NewRequest has made the request's body of bytes or a
// string, of the length that the request says, if it does.
func inMemory(req *http.Request) bool {
	v := reflect.ValueOf(req.Body)
	if v.Type() != reflect.TypeOf(io.NopCloser((*bytes.Reader)(nil))) || v.Kind() != reflect.Struct || v.NumField() != 1 {
		return false
	}
	switch r := v.Field(0).Interface().(type) {
	case *bytes.Buffer, *bytes.Reader, *strings.Reader:
		n := r.(interface{ Len() int }).Len()
		return req.ContentLength <= 0 || req.ContentLength == int64(n)
	}
	return false
}

// An uploadBody is a body of a request on its way to Base. It hides other methods of
// the body, such as io.WriterTo, as errors in writing are the host's.
type uploadBody struct {
	io.ReadCloser
	upload *upload
	read   int64        // the reader's
	closed atomics.Bool // false → true before the body is closed, as closing makes a Read fail
}

// Read notes an error, and that there is more or less of the body than the
// request says, unless Base has given the body up before.
func (b *uploadBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.read += int64(n)
	broken := err != nil && err != io.EOF
	if length := b.upload.length; length > 0 {
		broken = broken || b.read > length || err == io.EOF && b.read < length
	}
	if broken && !b.closed.Load() {
		b.upload.broken.Store(true)
	}
	return n, err
}

func (b *uploadBody) Close() error {
	b.closed.Store(true)
	return b.ReadCloser.Close()
}

// An incoming is the body of a request as a handler gets it. It notes whether the client
// does not send the body, which says nothing about the handler. The handler gets a copy of
// the request, as the server examines the type of its own body when it answers.
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
