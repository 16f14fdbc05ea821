package breakerhttp_test

import (
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/latchfree/latchfree/atomicbreaker/breakerhttp"
)

// heap is how many bytes are in use.
func heap() int64 {
	var s runtime.MemStats
	runtime.GC()
	runtime.GC() // for what finalizers and pools have kept
	runtime.ReadMemStats(&s)
	return int64(s.HeapAlloc)
}

// A host that fails is remembered by its name, which HostKey cuts out of the
// URL, and not with the whole URL.
func TestMemoryOfFailingHosts(t *testing.T) {
	const hosts, size = 500, 10_000
	rt := transport(breakerhttp.TransportConfig{Base: roundTripper(func(*http.Request) (*http.Response, error) { return nil, errBoom })})
	query := strings.Repeat("x", size)
	before := heap()
	for i := range hosts {
		r, err := http.NewRequest("GET", fmt.Sprintf("http://h%05d:8080/?q=%s", i, query), nil)
		if err != nil {
			t.Fatal(err)
		}
		rt.RoundTrip(r)
	}
	each := (heap() - before) / hosts
	if rt.Group().Len() != hosts {
		t.Fatalf("%d keys", rt.Group().Len())
	}
	if each > size/10 {
		t.Errorf("a failing host takes %d bytes, with URLs of %d", each, size)
	}
	runtime.KeepAlive(rt)
}
