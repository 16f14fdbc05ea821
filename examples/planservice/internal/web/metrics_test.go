package web

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/examples/planservice/api"
	"github.com/latchfree/latchfree/examples/planservice/internal/service"
)

// scrape returns the samples of /metrics, and checks what Prometheus asks of the text.
func scrape(t *testing.T, server *httptest.Server) (samples map[string]string, help []string) {
	t.Helper()
	r, err := server.Client().Get(server.URL + "/metrics")
	require.NoError(t, err)
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, r.StatusCode, "%s", body)
	problems, err := promlint.New(strings.NewReader(string(body))).Lint()
	require.NoError(t, err)
	assert.Empty(t, problems)
	samples = map[string]string{}
	for line := range strings.Lines(string(body)) {
		line = strings.TrimSuffix(line, "\n")
		if text, ok := strings.CutPrefix(line, "# HELP "); ok {
			help = append(help, text)
		} else if i := strings.LastIndexByte(line, ' '); i > 0 && line[0] != '#' {
			samples[line[:i]] = line[i+1:]
		}
	}
	return samples, help
}

// failing returns a strategy that is down.
func failing(t *testing.T) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }))
	t.Cleanup(server.Close)
	return server
}

// prepare creates an action, the strategies and a plan "p" of them.
func prepare(t *testing.T, client *api.Client, url string, strategies ...string) {
	t.Helper()
	ctx := t.Context()
	_, err := client.CreateAction(ctx, api.Action{Name: "a"})
	require.NoError(t, err)
	for _, name := range strategies {
		if name != api.Direct {
			_, err := client.CreateStrategy(ctx, api.Strategy{Name: name, URL: url})
			require.NoError(t, err)
		}
	}
	_, err = client.CreatePlan(ctx, api.Plan{Name: "p", Actions: []string{"a"}, Strategies: strategies})
	require.NoError(t, err)
}

func TestMetrics(t *testing.T) {
	server, client := serve(t, service.Config{Journal: t.TempDir(), NoSync: true, OpenTimeout: -1})
	prepare(t, client, failing(t).URL, "down", api.Direct)
	ctx := t.Context()
	for range 4 {
		_, err := client.Run(ctx, "p", api.RunPlan{Start: true})
		require.NoError(t, err)
	}
	_, err := client.ApplyPlan(ctx, "p", "", api.ApplyChangeset{})
	require.NoError(t, err)

	samples, _ := scrape(t, server)
	for name, want := range map[string]string{
		`planservice_runs_total`:                                                                                   "4",
		`planservice_strategy_calls_total{outcome="success"}`:                                                      "4",
		`planservice_strategy_calls_total{outcome="failure"}`:                                                      "3",
		`planservice_strategy_calls_total{outcome="rejected"}`:                                                     "1",
		`planservice_strategy_calls_total{outcome="cancelled"}`:                                                    "0",
		`planservice_changes_recorded_total`:                                                                       "4",
		`planservice_changes_written_total`:                                                                        "4",
		`planservice_changesets_applied_total`:                                                                     "4",
		`planservice_workers`:                                                                                      "16",
		`latchfree_breaker_group_keys{group="strategies",state="Open"}`:                                            "1",
		`latchfree_breaker_group_key_open{group="strategies",key="down"}`:                                          "1",
		`latchfree_breaker_group_openings_total{group="strategies"}`:                                               "1",
		`latchfree_breaker_group_rejected_total{group="strategies"}`:                                               "1",
		`latchfree_cache_entries{cache="engines"}`:                                                                 "1",
		`latchfree_cache_created_total{cache="engines"}`:                                                           "1",
		`latchfree_cache_create_duration_seconds_count{cache="engines",result="ok"}`:                               "1",
		`latchfree_registry_entries{registry="actions"}`:                                                           "1",
		`latchfree_registry_entries{registry="plans"}`:                                                             "1",
		`latchfree_registry_entries{registry="strategies"}`:                                                        "2",
		`latchfree_registry_entries{registry="changesets"}`:                                                        "4",
		`latchfree_tracker_changesets_total{tracker="changes"}`:                                                    "4",
		`latchfree_tracker_open{tracker="events"}`:                                                                 "1",
		`latchfree_breaker_group_transitions_total{from="Closed",group="strategies",reason="Threshold",to="Open"}`: "1",
	} {
		assert.Equal(t, want, samples[name], name)
	}
	for _, name := range []string{`latchfree_journal_lines_total{journal="changes"}`, `latchfree_journal_lines_total{journal="events"}`, `go_goroutines`} {
		assert.NotEmpty(t, samples[name], name)
	}
}

// Clients name strategies, but the number of series does not grow with them.
func TestMetricsAreBounded(t *testing.T) {
	server, client := serve(t, service.Config{})
	var names []string
	for i := range 50 {
		names = append(names, fmt.Sprintf("down-%02d", i))
	}
	prepare(t, client, failing(t).URL, names...)
	_, err := client.Run(t.Context(), "p", api.RunPlan{})
	require.NoError(t, err)
	samples, _ := scrape(t, server)
	keys := 0
	for name := range samples {
		if strings.HasPrefix(name, "latchfree_breaker_group_key_failures{") {
			keys++
		}
	}
	assert.Equal(t, 21, keys, "20 strategies and _other")
	assert.Equal(t, "30", samples[`latchfree_breaker_group_key_failures{group="strategies",key="_other"}`])
}

// A call whose caller has left counts as cancelled, and not for the breaker.
func TestCancelledCallsAreCounted(t *testing.T) {
	called := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body) // so that the server sees when the caller leaves
		close(called)
		<-r.Context().Done()
	}))
	defer slow.Close()
	server, client := serve(t, service.Config{})
	prepare(t, client, slow.URL, "slow")
	ctx, leave := context.WithCancel(t.Context())
	go func() { <-called; leave() }()
	_, err := client.Run(ctx, "p", api.RunPlan{})
	require.ErrorIs(t, err, context.Canceled)
	require.EventuallyWithT(t, func(t *assert.CollectT) {
		status, err := client.Status(context.Background())
		assert.NoError(t, err)
		assert.Equal(t, uint64(1), status.Counts.Cancelled)
	}, time.Minute, 5*time.Millisecond)
	samples, _ := scrape(t, server)
	assert.Equal(t, "1", samples[`planservice_strategy_calls_total{outcome="cancelled"}`])
	assert.Equal(t, "0", samples[`planservice_strategy_calls_total{outcome="failure"}`])
}

// The stores of the reports have the service's metrics alone.
func TestMetricsOfOtherStores(t *testing.T) {
	for _, store := range []string{"naive", "locked"} {
		server, _ := serve(t, service.Config{Store: store})
		samples, _ := scrape(t, server)
		assert.Equal(t, "0", samples["planservice_runs_total"], store)
		assert.NotContains(t, samples, `latchfree_registry_entries{registry="actions"}`, store)
	}
}

// README.md lists the service's own metrics as they are.
func TestREADMEListsMetrics(t *testing.T) {
	server, _ := serve(t, service.Config{})
	_, help := scrape(t, server)
	text, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	found := 0
	for _, h := range help {
		name, what, _ := strings.Cut(h, " ")
		if strings.HasPrefix(name, "planservice_") {
			found++
			assert.Regexp(t, "(?m)^\\| `"+name+"` \\| .*"+what, string(text))
		}
	}
	assert.Equal(t, found, strings.Count(string(text), "\n| `planservice_"), "README.md lists metrics that there are not")
}
