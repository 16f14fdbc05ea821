package breakerhttp

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/internal/atomics"
)

// Transport is an http.RoundTripper that stops requests to hosts that keep failing.
//
// A request that is not admitted gets atomicbreaker.ErrOpen, ErrTooManyProbes
// or, with Config.DetailedErrors, an *atomicbreaker.OpenError. All match
// atomicbreaker.ErrRejected, also within the *url.Error of an http.Client.
//
// The zero Transport has the default settings. A Transport must not be copied after first
// use. All methods may be called concurrently.
type Transport struct {
	_      atomics.NoCopy
	config TransportConfig             // never changes
	own    atomicbreaker.Group[string] // used if config.Group is nil
}

// TransportConfig holds the settings of a Transport. The zero value means the defaults.
type TransportConfig struct {
	// Base sends the requests that are admitted. Nil means http.DefaultTransport. It may
	// get a copy of the request with another body; see the package documentation.
	Base http.RoundTripper

	// Group holds the breakers, by the results of Key. Several Transports may share it.
	// Nil means a Group of this Transport's own with the default settings. Classify is
	// used in place of its Config.Classify.
	Group *atomicbreaker.Group[string]

	// Key returns the breaker of a request. It must not change the request. Nil means
	// HostKey.
	Key func(*http.Request) string

	// Classify says what an answer means, or an error if the response is nil. It must not
	// touch the body. Nil means ClassifyResponse. If it panics, the request has failed.
	//
	// It is not called for errors of the caller, which are Ignored: the context was
	// cancelled; the request's own body could not be read before Base closed it, or is
	// longer or shorter than the request says; or net/http did not send the request
	// because its method, URL, header or trailer is invalid or its scheme unknown. The
	// older http.Request.Cancel looks like an http.Client.Timeout, so it is a failure.
	Classify func(*http.Response, error) atomicbreaker.Outcome

	// MaxRetryAfter bounds the time for which a failure with a Retry-After header opens
	// the breaker, as Config.MaxOpenTimeout does in any case. Zero means the
	// Config.OpenTimeout that Group.Config returns, and no bound if that is negative. If
	// MaxRetryAfter is negative, the header is ignored.
	MaxRetryAfter time.Duration

	// WatchBody makes a request whose header is a success end with the body of the
	// answer: when that has been read to its end, has been closed, or breaks. An error of
	// the body is classified like an error without a response. Responses that switch
	// protocols still end with the header. A body that is neither read to its end nor
	// closed is never reported. The time of the body's reader is part of the call for
	// atomicbreaker.SlowRate.
	WatchBody bool
}

// NewTransport returns a Transport, or an error that names the setting that is
// wrong. Base must be neither a nil Transport nor one with the same Group: the
// probe of a half-open breaker would be rejected by itself.
func NewTransport(c TransportConfig) (*Transport, error) {
	if base, ok := c.Base.(*Transport); ok {
		switch {
		case base == nil:
			return nil, errors.New("breakerhttp: TransportConfig.Base: must not be a nil *Transport")
		case c.Group != nil && base.Group() == c.Group:
			return nil, errors.New("breakerhttp: TransportConfig.Base: must not be a Transport with the same Group")
		}
	}
	return &Transport{config: c}, nil
}

// MustNewTransport is like NewTransport but panics if a setting is wrong.
func MustNewTransport(c TransportConfig) *Transport {
	t, err := NewTransport(c)
	if err != nil {
		panic(err)
	}
	return t
}

// RoundTrip sends the request if the breaker of its host admits it, and reports how that
// ended. A request whose context has ended is not sent; the error is the context's cause.
// A request without a URL or a host goes to Base as it is, which refuses it.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if req == nil || req.URL == nil || req.URL.Host == "" {
		return t.base().RoundTrip(req)
	}
	c := trip{t: t, req: req}
	defer c.unwind()
	if req.Context().Err() != nil {
		return nil, context.Cause(req.Context())
	}
	key := t.config.Key
	if key == nil {
		key = HostKey
	}
	c.key = key(req)
	var err error
	if c.permit, err = t.Group().Allow(c.key); err != nil {
		return nil, err
	}
	return c.send()
}

// A trip is one request on its way.
type trip struct {
	t      *Transport
	req    *http.Request
	key    string
	permit atomicbreaker.GroupPermit[string]
	stage  stage
	upload *upload // nil if the request's body cannot fail
	resp   *http.Response
}

// A stage says what is left to do if a request goes no further.
type stage uint8

const (
	asking      stage = iota // close the request's body, which a RoundTripper always does
	admitted                 // give the permit back, and close the request's body
	sending                  // report a failure; Base has the request's body
	classifying              // report a failure and close the response's body, which nobody else has
	reporting                // close the response's body
	over                     // nothing
)

// send makes the call that the permit admits.
func (c *trip) send() (*http.Response, error) {
	c.stage = admitted
	sent, upload := watchUpload(c.req) // which asks the caller's body how long it is
	c.stage, c.upload = sending, upload
	resp, err := c.t.base().RoundTrip(sent)
	c.stage, c.resp = classifying, resp
	if resp != nil && resp.Request == sent {
		resp.Request = c.req
	}
	outcome := c.outcome(resp, err)
	switch {
	case outcome == atomicbreaker.Success && c.t.config.WatchBody && hasBody(resp):
		resp.Body = &body{ReadCloser: resp.Body, trip: *c}
	case outcome == atomicbreaker.Success || outcome == atomicbreaker.Ignored:
		c.stage = reporting
		c.permit.Report(outcome)
	default:
		c.fail()
	}
	c.stage = over
	return resp, err
}

// hasBody reports whether a response has a body that ends.
func hasBody(resp *http.Response) bool {
	return resp != nil && resp.Body != nil && resp.Body != http.NoBody && resp.StatusCode != http.StatusSwitchingProtocols
}

// outcome classifies an answer or an error, unless the caller is to blame. It runs user code.
func (c *trip) outcome(resp *http.Response, err error) atomicbreaker.Outcome {
	switch {
	case err != nil && (gone(c.req) || c.upload.failed() || c.resp == nil && refused(c.req, err)):
		return atomicbreaker.Ignored
	case err == nil && resp == nil:
		return atomicbreaker.Failure // Base is broken
	case c.t.config.Classify != nil:
		return c.t.config.Classify(resp, err)
	}
	return ClassifyResponse(resp, err)
}

// fail reports a failure, and opens the breaker if the response says for how long. It
// runs user code: listeners, and PerKey for the bound.
func (c *trip) fail() {
	var d time.Duration
	limit := c.t.config.MaxRetryAfter
	if c.resp != nil && limit >= 0 {
		d = retryAfter(c.resp.Header, atomics.Now())
	}
	if d > 0 && limit == 0 {
		if limit = c.t.Group().Config(c.key).OpenTimeout; limit == 0 {
			limit = atomicbreaker.DefaultOpenTimeout
		}
	}
	if limit > 0 {
		d = min(d, limit)
	}
	c.stage = reporting
	if d > 0 {
		c.permit.Trip(d)
		return
	}
	c.permit.Failure()
}

// unwind does what is left to do when the request was rejected, or user code has panicked
// or called runtime.Goexit.
func (c *trip) unwind() {
	switch c.stage {
	case admitted:
		defer c.permit.Cancel()
		fallthrough
	case asking:
		if c.req.Body != nil {
			c.req.Body.Close()
		}
	case sending:
		c.permit.Failure()
	case classifying:
		defer c.permit.Failure()
		fallthrough
	case reporting:
		if c.resp != nil && c.resp.Body != nil {
			c.resp.Body.Close()
		}
	}
}

// A body reports how the call ended when the response's body does; see
// TransportConfig.WatchBody. Read and Close may be called at once.
type body struct {
	io.ReadCloser
	trip     trip
	reported atomics.Bool // false → true once, by the caller that then uses the permit
}

// Read reports a success at the end of the body, and the outcome of an error.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	switch {
	case err == nil || !b.reported.CompareAndSwap(false, true):
	case err == io.EOF:
		b.trip.permit.Success()
	default:
		report(b.trip.permit, func() atomicbreaker.Outcome { return b.trip.outcome(nil, err) })
	}
	return n, err
}

// Close reports a success if no Read has ended the call. It claims the report first, as
// closing makes a Read fail, and it closes the body whatever the listener does.
func (b *body) Close() (err error) {
	defer func() { err = b.ReadCloser.Close() }()
	if b.reported.CompareAndSwap(false, true) {
		b.trip.permit.Success()
	}
	return nil
}

// report reports the outcome that classify returns, or a failure if it does not return.
func report(p atomicbreaker.GroupPermit[string], classify func() atomicbreaker.Outcome) {
	returned := false
	defer func() {
		if !returned {
			p.Failure()
		}
	}()
	outcome := classify()
	returned = true
	p.Report(outcome)
}

// Group returns the group of the Transport's breakers, also if TransportConfig.Group is
// nil. Through it the breakers can be read and changed while they are in use.
func (t *Transport) Group() *atomicbreaker.Group[string] {
	if t.config.Group != nil {
		return t.config.Group
	}
	return &t.own
}

// CloseIdleConnections closes the idle connections of Base if that can, for
// http.Client.CloseIdleConnections.
func (t *Transport) CloseIdleConnections() {
	if c, ok := t.base().(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

func (t *Transport) base() http.RoundTripper {
	if t.config.Base != nil {
		return t.config.Base
	}
	return http.DefaultTransport
}
