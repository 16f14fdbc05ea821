package latchprom_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/latchfree/latchfree/atomicbreaker"
	latchprom "github.com/latchfree/latchfree/integrations/prometheus"
	"github.com/latchfree/latchfree/oncecache"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// A breaker and a cache are served to Prometheus.
func Example() {
	transitions := latchprom.NewTransitions("payments")
	breaker := atomicbreaker.MustNew(atomicbreaker.Config{OnStateChange: transitions.Count})
	creations := latchprom.NewCreations("clients")
	clients := oncecache.MustNew(oncecache.Config[string, int]{OnCreate: latchprom.OnCreate[string](creations)})

	registry := prometheus.NewRegistry()
	registry.MustRegister(
		latchprom.Breaker("payments", breaker), transitions,
		latchprom.Cache("clients", clients, latchprom.CacheOptions{}), creations,
	)
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	server := httptest.NewServer(mux)
	defer server.Close()

	breaker.Trip(0)
	clients.Set("eu", 1)

	response, err := http.Get(server.URL + "/metrics")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(response.Body)
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "latchfree_breaker_openings") || strings.HasPrefix(line, "latchfree_cache_entries") {
			fmt.Print(line)
		}
	}
	// Output:
	// latchfree_breaker_openings_total{breaker="payments"} 1
	// latchfree_cache_entries{cache="clients"} 1
}

// The keys of a group appear by their hosts, the worst ten with labels of their own.
func ExampleGroup() {
	type endpoint struct{ host, path string }
	var group atomicbreaker.Group[endpoint]
	group.Trip(endpoint{"eu", "/pay"}, 0)
	group.Trip(endpoint{"eu", "/refund"}, 0)

	registry := prometheus.NewRegistry()
	registry.MustRegister(latchprom.Group("endpoints", &group, latchprom.GroupOptions[endpoint]{
		MaxKeys: 10,
		Label:   func(e endpoint) string { return e.host },
	}))
	families, err := registry.Gather()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range families {
		if f.GetName() == "latchfree_breaker_group_key_open" {
			for _, m := range f.Metric {
				fmt.Println(m.Label[1].GetValue(), m.GetGauge().GetValue())
			}
		}
	}
	// Output:
	// _other 0
	// eu 2
}
