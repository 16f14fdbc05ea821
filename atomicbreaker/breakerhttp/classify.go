package breakerhttp

import (
	"context"
	"errors"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/latchfree/latchfree/atomicbreaker"
)

// HostKey is the default of TransportConfig.Key: host and port of the URL, in lower case,
// with the port of the scheme if there is none. It ignores the request's Host header.
func HostKey(r *http.Request) string {
	host := strings.ToLower(r.URL.Host)
	if r.URL.Port() != "" {
		return host
	}
	host = strings.TrimSuffix(host, ":")
	switch r.URL.Scheme {
	case "http":
		return host + ":80"
	case "https":
		return host + ":443"
	}
	return host
}

// ClassifyResponse is the default of TransportConfig.Classify. Answers with 5xx are
// failures, apart from 501, Not Implemented, and 505, HTTP Version Not Supported. An answer
// with 429, Too Many Requests, is Ignored: the host limits one client and works for others.
// If TransportConfig.Key separates the clients that the host limits, a Classify may make it a
// Failure. All other answers are successes: a server that refuses a request works.
//
// Errors are failures, apart from three kinds that are Ignored: context.Canceled;
// atomicbreaker.ErrRejected, as then a Base with breakers of its own has sent nothing;
// and *http.MaxBytesError, which is an error of the sender. An error that is joined with
// a failure is a failure; see [atomicbreaker.Classify].
func ClassifyResponse(resp *http.Response, err error) atomicbreaker.Outcome {
	switch {
	case err != nil:
		var tooLarge *http.MaxBytesError
		if errors.As(err, &tooLarge) {
			return atomicbreaker.Ignored
		}
		//lint:ignore SA1012 the context of the request is not known
		return atomicbreaker.Classify(nil, err)
	case resp.StatusCode == http.StatusTooManyRequests:
		return atomicbreaker.Ignored
	case broken(resp.StatusCode):
		return atomicbreaker.Failure
	}
	return atomicbreaker.Success
}

// ClassifyStatus is the default of MiddlewareConfig.Classify. A request whose
// client has gone is Ignored, and one whose context has ended at its deadline is a
// failure, whatever the status: behind an http.TimeoutHandler the client has got a 503.
// Else 5xx is a failure, apart from 501, Not Implemented, and 505, HTTP Version Not
// Supported, and all else a success.
func ClassifyStatus(r *http.Request, status int) atomicbreaker.Outcome {
	switch {
	case gone(r):
		return atomicbreaker.Ignored
	case errors.Is(r.Context().Err(), context.DeadlineExceeded), broken(status):
		return atomicbreaker.Failure
	}
	return atomicbreaker.Success
}

// gone reports whether the caller or client of a request has cancelled it.
func gone(r *http.Request) bool { return errors.Is(r.Context().Err(), context.Canceled) }

// broken reports whether a status says that the server does not work, and not only
// that it does not serve this request.
func broken(status int) bool {
	return status >= 500 && status <= 599 && status != http.StatusNotImplemented && status != http.StatusHTTPVersionNotSupported
}

// refused reports whether req was not sent because it is invalid: err, or an error that
// it wraps, is one with which net/http says so, or its URL has control characters.
//
// The errors have no types. No host can make one begin like these, and a proxy only by its
// answer to a CONNECT. Which error a wrong URL causes depends on which goroutine is first.
func refused(req *http.Request, err error) bool {
	for ; err != nil; err = errors.Unwrap(err) {
		text := err.Error()
		for _, begin := range [...]string{
			"net/http: invalid ", // method, header or trailer
			"http2: invalid ",    // the same, and the Host
			"http: nil Request.Header",
			"unsupported protocol scheme ",
		} {
			if strings.HasPrefix(text, begin) {
				return true
			}
		}
	}
	return strings.ContainsFunc(req.URL.RequestURI(), func(r rune) bool { return r < ' ' || r == 0x7f })
}

// retryAfter returns the time in a Retry-After header, from now on: RFC 9110, section
// 10.2.3. It is zero if the header is absent, wrong, or names the past. A date is compared
// with the response's own Date if there is one, so that clocks need not agree.
func retryAfter(h http.Header, now time.Time) time.Duration {
	v := strings.TrimSpace(h.Get("Retry-After"))
	if v != "" && strings.Trim(v, "0123456789") == "" {
		seconds, err := strconv.ParseInt(v, 10, 64)
		if err != nil || seconds > int64(math.MaxInt64/time.Second) {
			return math.MaxInt64
		}
		return time.Duration(seconds) * time.Second
	}
	until, err := http.ParseTime(v)
	if err != nil {
		return 0
	}
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		now = date
	}
	return max(0, until.Sub(now))
}
