package web

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/examples/planservice/api"
	"github.com/latchfree/latchfree/examples/planservice/internal/service"
)

func serve(t *testing.T, c service.Config) (*httptest.Server, *api.Client) {
	t.Helper()
	c.Log = slog.New(slog.DiscardHandler)
	s, err := service.New(t.Context(), c)
	require.NoError(t, err)
	stop := make(chan struct{})
	server := httptest.NewServer(New(s, c.Log, stop))
	t.Cleanup(func() {
		close(stop)
		server.Close()
		assert.NoError(t, s.Close(context.Background()))
	})
	return server, api.NewClient(server.URL, server.Client())
}

func TestBadInput(t *testing.T) {
	server, client := serve(t, service.Config{})
	_, err := client.CreateAction(t.Context(), api.Action{Name: "Back Up"})
	require.NoError(t, err)
	for _, c := range []struct {
		method, path, body, header string
		status                     int
		code                       api.Code
	}{
		{"POST", "/v1/actions", `{`, "", 400, api.CodeInvalidJSON},
		{"POST", "/v1/actions", ``, "", 400, api.CodeInvalidJSON},
		{"POST", "/v1/actions", `{"name":"x"} {}`, "", 400, api.CodeInvalidJSON},
		{"POST", "/v1/actions", `{"name":"x","other":1}`, "", 400, api.CodeInvalidJSON},
		{"POST", "/v1/actions", `{"name":"` + strings.Repeat("x", 2<<20) + `"}`, "", 413, api.CodeTooLarge},
		{"POST", "/v1/actions", `{"name":"x"}`, "Content-Type: text/plain", 415, api.CodeMediaType},
		{"POST", "/v1/actions", `{"name":"a/b"}`, "", 400, api.CodeInvalidName},
		{"POST", "/v1/actions", `{"name":" back  UP "}`, "", 409, api.CodeExists},
		{"PUT", "/v1/actions/back-up", `{}`, "", 428, api.CodePreconditionRequired},
		{"PUT", "/v1/actions/back-up", `{}`, "If-Match: 1", 412, api.CodeConflict},
		{"PUT", "/v1/actions/back-up", `{}`, `If-Match: W/"1"`, 412, api.CodeConflict},
		{"PUT", "/v1/actions/back-up", `{}`, `If-Match: "2"`, 412, api.CodeConflict},
		{"PUT", "/v1/actions/back-up", `{"name":"other"}`, `If-Match: "1"`, 400, api.CodeInvalid},
		{"PUT", "/v1/actions/absent", `{}`, `If-Match: "1"`, 404, api.CodeNotFound},
		{"POST", "/v1/breakers/reset", ``, "Sec-Fetch-Site: cross-site", 403, api.CodeCrossOrigin},
		{"DELETE", "/v1/actions", ``, "", 405, api.CodeMethod},
		{"GET", "/v2", ``, "", 404, api.CodeNotFound},
		{"POST", "/v1/plans", `{"name":"p","actions":["absent"]}`, "", 400, api.CodeInvalid},
		{"POST", "/v1/plans", `{"name":"p","actions":["back up"],"strategies":["absent"]}`, "", 400, api.CodeInvalid},
		{"POST", "/v1/plans", `{"name":"p"}`, "", 400, api.CodeInvalid},
		{"POST", "/v1/plans/absent/run", ``, "", 404, api.CodeNotFound},
		{"POST", "/v1/changes", `{}`, "", 409, api.CodeNoActiveChangeset},
		{"POST", "/v1/changesets", `{"plan":"absent"}`, "", 404, api.CodeNotFound},
		{"POST", "/v1/changesets/absent/apply", ``, "", 404, api.CodeNotFound},
		{"POST", "/v1/changesets/absent/apply", `{"database":"file:/etc/passwd"}`, "", 400, api.CodeInvalid},
		{"POST", "/v1/strategies", `{"name":"s","url":"file:///etc"}`, "", 400, api.CodeInvalid},
		{"POST", "/v1/strategies", `{"name":"direct","url":"http://host/"}`, "", 409, api.CodeExists},
		{"PUT", "/v1/strategies/direct", `{"url":"http://host/"}`, `If-Match: "1"`, 400, api.CodeInvalid},
		{"PUT", "/v1/strategies/absent", `{"url":"http://host/"}`, `If-Match: "1"`, 404, api.CodeNotFound},
		{"PUT", "/v1/strategies/direct", `{"url":"ftp://host/"}`, `If-Match: "1"`, 400, api.CodeInvalid},
		{"POST", "/v1/breakers/absent/reset", ``, "", 404, api.CodeNotFound},
	} {
		r, err := http.NewRequest(c.method, server.URL+c.path, strings.NewReader(c.body))
		require.NoError(t, err)
		if name, value, ok := strings.Cut(c.header, ": "); ok {
			r.Header.Set(name, value)
		}
		answer, err := server.Client().Do(r)
		require.NoError(t, err)
		text, _ := io.ReadAll(answer.Body)
		answer.Body.Close()
		assert.Equal(t, c.status, answer.StatusCode, "%s %s: %s", c.method, c.path, text)
		assert.Contains(t, string(text), `"code":"`+string(c.code)+`"`)
	}
}

func TestBreakerAndKeys(t *testing.T) {
	failing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }))
	defer failing.Close()
	_, client := serve(t, service.Config{})
	ctx := t.Context()
	_, err := client.CreateStrategy(ctx, api.Strategy{Name: "f", URL: failing.URL})
	require.NoError(t, err)
	_, err = client.CreateAction(ctx, api.Action{Name: "a"})
	require.NoError(t, err)
	_, err = client.CreatePlan(ctx, api.Plan{Name: "p", Actions: []string{"a"}, Strategies: []string{"f", "direct"}})
	require.NoError(t, err)
	outcomes := []string{}
	for range 4 {
		run, err := client.Run(ctx, "p", api.RunPlan{Start: true})
		require.NoError(t, err)
		outcomes = append(outcomes, run.Results[0].Outcome)
		assert.Len(t, run.Results[1].Receipts, 1)
	}
	assert.Equal(t, []string{"failure", "failure", "failure", "rejected"}, outcomes)
	require.NoError(t, client.ResetBreaker(ctx, "F"))
	all, err := client.Changesets(ctx)
	require.NoError(t, err)
	first, err := client.Apply(ctx, all[0].ID, "k", api.ApplyChangeset{})
	require.NoError(t, err)
	again, err := client.Apply(ctx, all[0].ID, "k", api.ApplyChangeset{})
	require.NoError(t, err)
	first.Replayed = true
	assert.Equal(t, first, again)
	_, err = client.Apply(ctx, all[0].ID, "other", api.ApplyChangeset{})
	assert.True(t, api.IsCode(err, api.CodeAlreadyApplied), err)
	_, err = client.Apply(ctx, all[1].ID, "k", api.ApplyChangeset{})
	assert.True(t, api.IsCode(err, api.CodeKeyReused), err)
}

// Clients get a code that says what is wrong, and no error of the service.
func TestTooManyDatabases(t *testing.T) {
	_, client := serve(t, service.Config{MemoryDatabases: 1})
	prepare(t, client, "", api.Direct)
	ctx := t.Context()
	c, err := client.StartChangeset(ctx, "p")
	require.NoError(t, err)
	_, err = client.Apply(ctx, c.ID, "", api.ApplyChangeset{Database: "memory:one"})
	require.NoError(t, err)
	c, err = client.StartChangeset(ctx, "p")
	require.NoError(t, err)
	_, err = client.Apply(ctx, c.ID, "", api.ApplyChangeset{Database: "memory:two"})
	assert.True(t, api.IsCode(err, api.CodeTooManyDatabases), err)
	assert.ErrorContains(t, err, "409")
	_, err = client.Apply(ctx, c.ID, "", api.ApplyChangeset{Database: "memory:one"})
	assert.NoError(t, err, "the changeset may be applied elsewhere")
}

// Clients name strategies: the page shows those that are down, and not all.
func TestPageShowsTheWorstBreakers(t *testing.T) {
	server, client := serve(t, service.Config{Threshold: 1, OpenTimeout: -1})
	var names []string
	for i := range 50 {
		names = append(names, fmt.Sprintf("s-%02d", i))
	}
	prepare(t, client, failing(t).URL, names...)
	ctx := t.Context()
	_, err := client.CreatePlan(ctx, api.Plan{Name: "last", Actions: []string{"a"}, Strategies: []string{"s-49"}})
	require.NoError(t, err)
	_, err = client.Run(ctx, "last", api.RunPlan{})
	require.NoError(t, err)
	page := text(t, server, "/")
	shown := regexp.MustCompile(`<td class="name">(\S+)<td><span class="state (\w+)">`).FindAllStringSubmatch(page, -1)
	require.Len(t, shown, 20)
	assert.Equal(t, []string{"s-49", "Open"}, shown[0][1:])
	assert.Equal(t, []string{"direct", "Closed"}, shown[1][1:])
	assert.Contains(t, page, "20 of 51")
}

// A list of nothing is a list in JSON.
func TestEmptyLists(t *testing.T) {
	for _, store := range []string{"latchfree", "naive", "locked"} {
		server, _ := serve(t, service.Config{Store: store})
		for _, path := range []string{"actions", "plans", "changesets", "engines"} {
			assert.Equal(t, "[]\n", text(t, server, "/v1/"+path), "%s of %s", path, store)
		}
		assert.NotContains(t, text(t, server, "/v1/status"), "null", store)
	}
}

// Only a replica has a number, and mirrors.
func TestPageWithoutCluster(t *testing.T) {
	server, client := serve(t, service.Config{})
	page := text(t, server, "/")
	assert.NotContains(t, page, "replica")
	assert.NotContains(t, page, "Mirrors")
	status, err := client.Status(t.Context())
	require.NoError(t, err)
	assert.Empty(t, status.Replica)
	assert.Nil(t, status.Mirrors)
}

// text returns the body of an answer.
func text(t *testing.T, server *httptest.Server, path string) string {
	t.Helper()
	r, err := server.Client().Get(server.URL + path)
	require.NoError(t, err)
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	return string(body)
}

func TestPageAndEvents(t *testing.T) {
	server, _ := serve(t, service.Config{})
	for path, want := range map[string]string{"/": "<title>planservice", "/static/page.css": "color-scheme", "/static/page.js": "EventSource", "/metrics": "planservice_runs_total 0", "/readyz": "ready"} {
		assert.Contains(t, text(t, server, path), want)
	}
	r, err := server.Client().Get(server.URL + "/events")
	require.NoError(t, err)
	defer r.Body.Close()
	head := make([]byte, 6)
	_, err = io.ReadFull(r.Body, head)
	require.NoError(t, err)
	assert.Equal(t, "data: ", string(head))
}
