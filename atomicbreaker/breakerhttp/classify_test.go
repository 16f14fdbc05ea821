package breakerhttp

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/latchfree/latchfree/atomicbreaker"
)

func TestHostKey(t *testing.T) {
	for raw, want := range map[string]string{
		"http://example.com":            "example.com:80",
		"https://example.com":           "example.com:443",
		"http://Example.COM:8080/a?b":   "example.com:8080",
		"https://user:pw@example.com":   "example.com:443",
		"http://[::1]/":                 "[::1]:80",
		"https://[FE80::1%25EN0]:8443/": "[fe80::1%en0]:8443",
		"http://example.com:":           "example.com:80",
		"other://example.com":           "example.com",
		"other://example.com:1":         "example.com:1",
	} {
		u, err := url.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		if got := HostKey(&http.Request{URL: u, Host: "elsewhere.example"}); got != want {
			t.Errorf("HostKey of %s is %q, want %q", raw, got, want)
		}
	}
}

func TestRetryAfterHeader(t *testing.T) {
	now := time.Date(2015, 10, 21, 7, 28, 0, 0, time.UTC)
	for _, tt := range []struct {
		after, date string
		want        time.Duration
	}{
		{"", "", 0},
		{"120", "", 2 * time.Minute},
		{" 1\t", "", time.Second},
		{"0", "", 0},
		{"00000000000000000000000000000007", "", 7 * time.Second},
		{"9223372036", "", 9223372036 * time.Second},
		{"9223372037", "", math.MaxInt64},
		{"99999999999999999999", "", math.MaxInt64},
		{"-1", "", 0},
		{"+1", "", 0},
		{"1.5", "", 0},
		{"1s", "", 0},
		{"1, 2", "", 0},
		{"٣", "", 0},
		{"never", "", 0},
		{"Wed, 21 Oct 2015 07:28:30 GMT", "", 30 * time.Second},
		{"Wednesday, 21-Oct-15 07:28:30 GMT", "", 30 * time.Second},
		{"Wed Oct 21 07:28:30 2015", "", 30 * time.Second},
		{"Wed, 21 Oct 2015 07:27:30 GMT", "", 0},
		{"Wed, 21 Oct 9999 07:27:30 GMT", "", math.MaxInt64},
		{"Wed, 21 Oct 2015 07:28:30 GMT", "Wed, 21 Oct 2015 07:28:20 GMT", 10 * time.Second},
		{"Wed, 21 Oct 2015 07:28:30 GMT", "Wed, 21 Oct 2015 07:28:40 GMT", 0},
		{"Wed, 21 Oct 2015 07:28:30 GMT", "today", 30 * time.Second},
		{"60", "Wed, 21 Oct 2015 07:28:20 GMT", time.Minute},
	} {
		h := http.Header{}
		if tt.after != "" {
			h.Set("Retry-After", tt.after)
		}
		if tt.date != "" {
			h.Set("Date", tt.date)
		}
		if got := retryAfter(h, now); got != tt.want {
			t.Errorf("%q, Date %q: %v, want %v", tt.after, tt.date, got, tt.want)
		}
	}
	if got := retryAfter(nil, now); got != 0 {
		t.Error(got)
	}
}

func TestDefaultClassifiers(t *testing.T) {
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	expired, cancel := context.WithDeadline(t.Context(), time.Time{})
	defer cancel()
	r := httptest.NewRequest("GET", "/", nil)
	for status, want := range map[int][2]atomicbreaker.Outcome{
		200: {atomicbreaker.Success, atomicbreaker.Success},
		301: {atomicbreaker.Success, atomicbreaker.Success},
		404: {atomicbreaker.Success, atomicbreaker.Success},
		429: {atomicbreaker.Ignored, atomicbreaker.Success},
		499: {atomicbreaker.Success, atomicbreaker.Success},
		500: {atomicbreaker.Failure, atomicbreaker.Failure},
		501: {atomicbreaker.Success, atomicbreaker.Success},
		502: {atomicbreaker.Failure, atomicbreaker.Failure},
		505: {atomicbreaker.Success, atomicbreaker.Success},
		599: {atomicbreaker.Failure, atomicbreaker.Failure},
		600: {atomicbreaker.Success, atomicbreaker.Success},
		999: {atomicbreaker.Success, atomicbreaker.Success},
	} {
		if got := ClassifyResponse(&http.Response{StatusCode: status}, nil); got != want[0] {
			t.Errorf("ClassifyResponse of %d is %v", status, got)
		}
		if got := ClassifyStatus(r, status); got != want[1] {
			t.Errorf("ClassifyStatus of %d is %v", status, got)
		}
		if got := ClassifyStatus(r.WithContext(cancelled), status); got != atomicbreaker.Ignored {
			t.Errorf("ClassifyStatus of %d without a client is %v", status, got)
		}
		if got := ClassifyStatus(r.WithContext(expired), status); got != atomicbreaker.Failure {
			t.Errorf("ClassifyStatus of %d after its deadline is %v", status, got)
		}
	}
	for err, want := range map[error]atomicbreaker.Outcome{
		errors.New("boom"):                        atomicbreaker.Failure,
		context.DeadlineExceeded:                  atomicbreaker.Failure,
		atomicbreaker.ErrTooManyProbes:            atomicbreaker.Ignored,
		context.Canceled:                          atomicbreaker.Ignored,
		&http.MaxBytesError{Limit: 4}:             atomicbreaker.Ignored,
		fmt.Errorf("%w", new(http.MaxBytesError)): atomicbreaker.Ignored,
		fmt.Errorf("read: %w", context.Canceled):  atomicbreaker.Ignored,

		errors.Join(errors.New("boom"), context.Canceled):                        atomicbreaker.Failure,
		fmt.Errorf("%w, %w", errors.New("boom"), atomicbreaker.ErrTooManyProbes): atomicbreaker.Failure,
		fmt.Errorf("%w, %w", context.Canceled, &http.MaxBytesError{Limit: 4}):    atomicbreaker.Ignored,
	} {
		if got := ClassifyResponse(nil, err); got != want {
			t.Errorf("ClassifyResponse of %v is %v", err, got)
		}
	}
}
