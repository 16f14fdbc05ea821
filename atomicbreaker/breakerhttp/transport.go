package breakerhttp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/internal/atomics"
)

// Transport is an http.RoundTripper that stops requests to hosts that keep
// failing. See TransportConfig for its settings.
//
// A request that is not admitted gets atomicbreaker.ErrOpen, ErrTooManyProbes
// or, with Config.DetailedErrors, an *atomicbreaker.OpenError. All match
// atomicbreaker.ErrRejected, also within the *url.Error of an http.Client.
//
// The zero Transport sends through http.DefaultTransport and has breakers with
// the default settings. A Transport must not be copied after first use. All
// methods may be called concurrently.
type Transport struct {
	_      atomics.NoCopy
	config TransportConfig             // never changes
	own    atomicbreaker.Group[string] // used if config.Group is nil
}

// TransportConfig holds the settings of a Transport. The zero value means the
// defaults.
type TransportConfig struct {
	// Base sends the requests that are admitted. Nil means
	// http.DefaultTransport. If a request has a body that could fail, Base gets
	// a copy of the request whose body is an io.ReadCloser and nothing else;
	// see the package documentation.
	Base http.RoundTripper

	// Group holds the breakers, by the results of Key. Several Transports may
	// share a Group. Nil means a Group of this Transport's own with the default
	// settings. Classify is used in place of its Config.Classify.
	Group *atomicbreaker.Group[string]

	// Key returns the breaker of a request. It must not change the request.
	// Nil means HostKey.
	Key func(*http.Request) string

	// Classify says what an answer means, or an error if the response is nil.
	// It must not touch the body. Nil means ClassifyResponse. If it panics, the
	// request has failed.
	//
	// It is not called for errors of the caller, which are Ignored: the request
	// was cancelled; its own body could not be read before Base closed it, or is
	// longer or shorter than the request says; or it was not sent because its
	// method, URL, header or trailer is invalid or its scheme unknown, as an error
	// of net/http says, perhaps wrapped by Base.
	Classify func(*http.Response, error) atomicbreaker.Outcome

	// CountTooManyRequests makes answers with 429 failures, whose Retry-After
	// counts. Without it they are Ignored, as a host that limits one client works
	// for others. Use it with a Key that separates the clients that the host
	// limits, for instance by API key. It must be false with Classify, which
	// decides about 429 too.
	CountTooManyRequests bool

	// IgnoreRetryAfter makes failures with a Retry-After header count like other
	// failures. Without it, each of them opens the breaker for the time in the
	// header, up to MaxRetryAfter.
	IgnoreRetryAfter bool

	// MaxRetryAfter bounds the time for which a Retry-After header opens the
	// breaker. Config.MaxOpenTimeout bounds it in any case. Zero means the
	// Config.OpenTimeout that Group.Config returns. If that or MaxRetryAfter is
	// negative, there is no other bound. It must be zero with IgnoreRetryAfter.
	MaxRetryAfter time.Duration

	// WatchBody makes a request whose header is a success end with the body of the
	// answer: when that has been read to its end, has been closed, or breaks. An
	// error of the body is classified like an error without a response. Responses
	// that switch protocols still end with the header. A body that is neither read
	// to its end nor closed is never reported. The time of the body's reader is
	// part of the call for atomicbreaker.SlowRate.
	WatchBody bool
}

// NewTransport returns a Transport, or an error that names the setting that is
// wrong. Base must be neither a nil Transport nor one with the same Group: the
// probe of a half-open breaker would be rejected by itself.
func NewTransport(c TransportConfig) (*Transport, error) {
	base, ok := c.Base.(*Transport)
	switch {
	case c.IgnoreRetryAfter && c.MaxRetryAfter != 0:
		return nil, fmt.Errorf("breakerhttp: TransportConfig.MaxRetryAfter %v: must be 0 with IgnoreRetryAfter", c.MaxRetryAfter)
	case c.CountTooManyRequests && c.Classify != nil:
		return nil, errors.New("breakerhttp: TransportConfig.CountTooManyRequests true: must be false with Classify, which says what 429 means")
	case !ok:
	case base == nil:
		return nil, errors.New("breakerhttp: TransportConfig.Base: must not be a nil *Transport")
	case c.Group != nil && base.Group() == c.Group:
		return nil, errors.New("breakerhttp: TransportConfig.Base: must not be a Transport with the same Group")
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

// RoundTrip sends the request if the breaker of its host admits it, and
// reports how that ended. A request whose context has ended is not sent; the
// error is the context's cause. A request without a URL or a host goes to Base
// as it is, which refuses it.
//
// RoundTrip is lock-free outside Base and the functions of the configuration,
// and blocking as Group.Allow and GroupPermit.Done are. It takes effect as they do.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if req == nil || req.URL == nil || req.URL.Host == "" {
		return t.base().RoundTrip(req)
	}
	c := trip{t: t, req: req}
	defer c.unwind()
	if req.Context().Err() != nil {
		return nil, context.Cause(req.Context())
	}
	// LP(RoundTrip): Group.Allow and the methods of GroupPermit.
	var err error
	c.key = t.key(req)
	if c.permit, err = t.Group().Allow(c.key); err != nil {
		return nil, err
	}
	return c.send()
}

// callersFault reports whether an error is the caller's: the caller has cancelled the
// request, or its body, which u knows, has failed.
func callersFault(req *http.Request, u *upload) bool {
	return errors.Is(req.Context().Err(), context.Canceled) || u.failed()
}

// classify returns the outcome of an answer or an error. It runs user code.
func (t *Transport) classify(resp *http.Response, err error) atomicbreaker.Outcome {
	switch {
	case err == nil && resp == nil:
		return atomicbreaker.Failure // Base is broken
	case t.config.Classify != nil:
		return t.config.Classify(resp, err)
	case t.config.CountTooManyRequests && err == nil && resp.StatusCode == http.StatusTooManyRequests:
		return atomicbreaker.Failure
	default:
		return ClassifyResponse(resp, err)
	}
}

// watches reports whether the call goes on until the end of the body.
func (t *Transport) watches(resp *http.Response) bool {
	return t.config.WatchBody && resp != nil && resp.Body != nil && resp.Body != http.NoBody &&
		resp.StatusCode != http.StatusSwitchingProtocols
}

// Group returns the group of the Transport's breakers, also if TransportConfig.Group is
// nil. Through it the breakers can be read and changed while they are in use.
//
// Group is wait-free. It takes effect at once: the group is always the same.
func (t *Transport) Group() *atomicbreaker.Group[string] {
	// LP(Group): nothing is shared.
	if t.config.Group != nil {
		return t.config.Group
	}
	return &t.own
}

// CloseIdleConnections closes the idle connections of Base if that can, for
// http.Client.CloseIdleConnections.
//
// CloseIdleConnections is blocking on whatever Base blocks on. It takes effect
// when Base says.
func (t *Transport) CloseIdleConnections() {
	// LP(CloseIdleConnections): this call.
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

func (t *Transport) key(req *http.Request) string {
	if t.config.Key != nil {
		return t.config.Key(req)
	}
	return HostKey(req)
}
