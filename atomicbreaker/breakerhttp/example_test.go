package breakerhttp_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/atomicbreaker/breakerhttp"
)

func Example() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "out of order", http.StatusInternalServerError)
	}))
	defer server.Close()

	client := &http.Client{Transport: new(breakerhttp.Transport)} // one breaker per host
	defer client.CloseIdleConnections()
	for range 6 {
		resp, err := client.Get(server.URL)
		if errors.Is(err, atomicbreaker.ErrRejected) {
			fmt.Println("nothing was sent")
			continue
		}
		fmt.Println(resp.Status)
		resp.Body.Close()
	}
	// Output:
	// 500 Internal Server Error
	// 500 Internal Server Error
	// 500 Internal Server Error
	// 500 Internal Server Error
	// 500 Internal Server Error
	// nothing was sent
}

// Errors say which host is meant and when to come again.
func ExampleTransport() {
	transport := breakerhttp.MustNewTransport(breakerhttp.TransportConfig{
		Group: atomicbreaker.MustNewGroup(atomicbreaker.GroupConfig[string]{
			PerKey: func(host string) atomicbreaker.Config {
				return atomicbreaker.Config{Name: host, OpenTimeout: 10 * time.Second, DetailedErrors: true}
			},
		}),
		WatchBody: true, // an answer that breaks off is a failure
	})
	for range 5 {
		transport.Group().RecordFailure("example.com:443")
	}
	client := &http.Client{Transport: transport}
	_, err := client.Get("https://example.com/")
	var open *atomicbreaker.OpenError
	if errors.As(err, &open) {
		fmt.Println(open.Name, open.State, open.RetryAfter.Round(time.Second))
	}
	// Output: example.com:443 Open 10s
}

func ExampleMiddleware() {
	var breakers breakerhttp.Middleware // one breaker per route
	mux := http.NewServeMux()
	mux.Handle("GET /search/{term}", breakers.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "index is gone", http.StatusInternalServerError)
	})))
	for i := range 6 {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest("GET", fmt.Sprintf("/search/%d", i), nil))
		if w.Code == http.StatusServiceUnavailable {
			fmt.Println(w.Code, breakers.Group().State("GET /search/{term}"))
		}
	}
	// Output: 503 Open
}

// The breaker of a request has the name of its host, with the port.
func ExampleHostKey() {
	for _, url := range []string{"https://Example.com/a", "http://example.com:8080/b"} {
		req, _ := http.NewRequest("GET", url, nil)
		fmt.Println(breakerhttp.HostKey(req))
	}
	// Output:
	// example.com:443
	// example.com:8080
}

// A Classify of one's own changes the meaning of a few answers.
func ExampleClassifyResponse() {
	classify := func(resp *http.Response, err error) atomicbreaker.Outcome {
		if err == nil && resp.StatusCode == http.StatusBadGateway {
			return atomicbreaker.Ignored // of the proxy, not of the host
		}
		return breakerhttp.ClassifyResponse(resp, err)
	}
	for _, status := range []int{200, 404, 429, 500, 502} {
		outcome := classify(&http.Response{StatusCode: status}, nil)
		fmt.Println(status, outcome)
	}
	// Output:
	// 200 Success
	// 404 Success
	// 429 Ignored
	// 500 Failure
	// 502 Ignored
}

// An operator stops all requests to a host while they run.
func ExampleTransport_Group() {
	transport := new(breakerhttp.Transport)
	transport.Group().ForceOpen("example.com:443")
	_, err := (&http.Client{Transport: transport}).Get("https://example.com/")
	fmt.Println(errors.Is(err, atomicbreaker.ErrRejected))
	// Output: true
}
