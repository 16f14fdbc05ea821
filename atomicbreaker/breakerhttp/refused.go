package breakerhttp

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"strings"

	"github.com/latchfree/latchfree/internal/atomics"
)

// errUnsent is the error of a request that net/http would have sent.
var errUnsent = errors.New("breakerhttp: not sent")

// refused reports whether err says that req cannot be sent: its method, URL or header
// is invalid, or its scheme is unknown.
//
// Only net/http knows which requests it refuses, so refused makes it refuse again,
// with a request that is over before it begins. A Base of another kind may send
// requests that net/http refuses, so err has to contain the error of net/http, except
// for a URL that no request can have.
func refused(req *http.Request, err error) bool {
	ctx, cancel := atomics.WithCancelCause(context.Background())
	cancel(errUnsent)
	probe := req.WithContext(ctx)
	//lint:ignore SA1019 a caller may still set Cancel
	probe.Body, probe.GetBody, probe.ContentLength, probe.Cancel = nil, nil, 0, nil
	said := refusal(probe)
	switch {
	case said == nil:
		// A URL with control characters is noticed when it is written, and the error
		// depends on which code notices it first.
		return probe.Write(new(bytes.Buffer)) != nil
	case strings.Contains(err.Error(), said.Error()):
		return true
	}
	// Of several fields that are invalid, the two may have named different ones.
	for name, values := range req.Header {
		probe.Header = http.Header{name: values}
		if said := refusal(probe); said != nil && strings.Contains(err.Error(), said.Error()) {
			return true
		}
	}
	return false
}

// refusal returns why net/http does not try to send a request whose context has
// ended with errUnsent, or nil if it would have.
func refusal(probe *http.Request) error {
	nowhere := http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return nil, errUnsent }}
	if _, err := nowhere.RoundTrip(probe); !errors.Is(err, errUnsent) {
		return err
	}
	return nil
}
