package breakerhttp

import (
	"net/http"
	"time"

	"github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/internal/atomics"
)

// A trip is one request on its way.
type trip struct {
	t      *Transport
	req    *http.Request
	key    string
	permit atomicbreaker.GroupPermit[string]
	stage  stage
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

// unwind does what is left to do, when the request was rejected, or user code
// has panicked or called runtime.Goexit. It does not recover.
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
		c.closeResponse()
	case reporting:
		c.closeResponse()
	}
}

func (c *trip) closeResponse() {
	if c.resp != nil && c.resp.Body != nil {
		c.resp.Body.Close()
	}
}

// send makes the call that the permit admits.
func (c *trip) send() (*http.Response, error) {
	c.stage = admitted
	sent, upload := watchUpload(c.req) // which asks the caller's body how long it is
	c.stage = sending
	resp, err := c.t.base().RoundTrip(sent)
	c.stage, c.resp = classifying, resp
	if resp != nil && resp.Request == sent {
		resp.Request = c.req
	}
	outcome := c.outcome(upload, err)
	switch {
	case outcome == atomicbreaker.Success && c.t.watches(resp):
		resp.Body = &body{ReadCloser: resp.Body, t: c.t, req: c.req, upload: upload, permit: c.permit}
	case outcome == atomicbreaker.Success || outcome == atomicbreaker.Ignored:
		c.stage = reporting
		c.permit.Report(outcome)
	default:
		c.fail()
	}
	c.stage = over
	return resp, err
}

// outcome classifies the answer or the error. It runs user code.
func (c *trip) outcome(u *upload, err error) atomicbreaker.Outcome {
	if err != nil && (callersFault(c.req, u) || c.resp == nil && refused(c.req, err)) {
		return atomicbreaker.Ignored
	}
	return c.t.classify(c.resp, err)
}

// fail reports a failure, which opens the breaker if the response says for how
// long. It runs user code.
func (c *trip) fail() {
	d := c.asked()
	c.stage = reporting
	if d > 0 {
		c.permit.Trip(d)
		return
	}
	c.permit.Failure()
}

// asked returns the time of the response's Retry-After header, within its bound, and
// zero if there is none. It runs user code, PerKey.
func (c *trip) asked() time.Duration {
	if c.resp == nil || c.t.config.IgnoreRetryAfter {
		return 0
	}
	d, limit := retryAfter(c.resp.Header, atomics.Now()), c.t.config.MaxRetryAfter
	if d > 0 && limit == 0 {
		if limit = c.t.Group().Config(c.key).OpenTimeout; limit == 0 {
			limit = atomicbreaker.DefaultOpenTimeout
		}
	}
	if limit > 0 {
		d = min(d, limit)
	}
	return d
}
