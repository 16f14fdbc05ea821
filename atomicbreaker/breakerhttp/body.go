package breakerhttp

import (
	"io"
	"net/http"

	"github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/internal/atomics"
)

// A body reports how the call ended when the response's body does; see
// TransportConfig.WatchBody. Read and Close may be called at once, as a
// response's body allows.
type body struct {
	io.ReadCloser
	t        *Transport
	req      *http.Request
	upload   *upload
	permit   atomicbreaker.GroupPermit[string]
	reported atomics.Bool // false → true once, by the caller that then uses the permit
}

// Read reports a success at the end of the body, and the outcome of its error if the
// body breaks.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && b.reported.CompareAndSwap(false, true) {
		b.end(err)
	}
	return n, err
}

// Close reports a success if the call has not ended before, as no Read has failed. It
// claims the report first, as closing makes a Read fail, and it closes the body
// whatever the listener does.
func (b *body) Close() (err error) {
	defer func() { err = b.ReadCloser.Close() }()
	if b.reported.CompareAndSwap(false, true) {
		b.permit.Success()
	}
	return nil
}

// end reports the end of the body. It runs user code.
func (b *body) end(err error) {
	if err == io.EOF {
		b.permit.Success()
		return
	}
	classified(b.permit, func() atomicbreaker.Outcome {
		if callersFault(b.req, b.upload) {
			return atomicbreaker.Ignored
		}
		return b.t.classify(nil, err)
	})
}
