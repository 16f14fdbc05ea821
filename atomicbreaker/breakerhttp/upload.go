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

// watchUpload returns the request that Base gets in place of req, which a
// RoundTripper must not change, and the upload that notes errors of its body. A
// request without a body, or with a body in memory, is passed unchanged: such a body
// cannot fail, and net/http would send the header in a packet of its own if it did not
// see the type of the body.
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
