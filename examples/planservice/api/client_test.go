package api_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/examples/planservice/api"
)

// serve answers every request in the same way, and returns the request that it got.
func serve(t *testing.T, status int, body string) (*api.Client, *http.Request) {
	t.Helper()
	got := new(http.Request)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*got = *r.Clone(context.Background())
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}))
	t.Cleanup(server.Close)
	return api.NewClient(server.URL+"/", nil), got
}

func TestRequestsAsTheServiceReadsThem(t *testing.T) {
	client, got := serve(t, 200, `{"version":8,"value":{"name":"a b"}}`)
	stored, err := client.PutAction(t.Context(), "a b/c", 7, api.Action{})
	require.NoError(t, err)
	assert.Equal(t, api.Stored[api.Action]{Version: 8, Value: api.Action{Name: "a b"}}, stored)
	assert.Equal(t, "PUT /v1/actions/a%20b%2Fc", got.Method+" "+got.URL.EscapedPath())
	assert.Equal(t, `"7"`, got.Header.Get("If-Match"))
	assert.Equal(t, "application/json", got.Header.Get("Content-Type"))

	_, err = client.Apply(t.Context(), "id", "", api.ApplyChangeset{})
	require.NoError(t, err)
	assert.NotContains(t, got.Header, "Idempotency-Key", "an empty key stands for none")
}

func TestErrorsOfTheService(t *testing.T) {
	client, _ := serve(t, 409, `{"error":{"code":"exists","message":"taken"}}`)
	_, err := client.CreatePlan(t.Context(), api.Plan{})
	require.EqualError(t, err, "planservice: 409 exists: taken")
	assert.True(t, api.IsCode(fmt.Errorf("wrapped: %w", err), api.CodeExists))
	assert.False(t, api.IsCode(err, api.CodeConflict))
	assert.False(t, api.IsCode(nil, api.CodeExists))
}

// A proxy before the service may answer in its own way.
func TestErrorsOfOthers(t *testing.T) {
	client, _ := serve(t, 502, "<h1>Bad Gateway</h1>\n")
	assert.EqualError(t, client.Ready(t.Context()), "planservice: 502 internal: <h1>Bad Gateway</h1>")
	client, _ = serve(t, 500, "{}")
	assert.EqualError(t, client.Ready(t.Context()), "planservice: 500 internal: {}")
	client, _ = serve(t, 200, "<h1>Welcome</h1>")
	_, err := client.Status(t.Context())
	assert.ErrorContains(t, err, "planservice: answer of GET /v1/status")
	client, _ = serve(t, 204, "")
	assert.NoError(t, client.ResetBreakers(t.Context()))
}

func TestAudit(t *testing.T) {
	client, _ := serve(t, 200, `{"kind":"process","n":1}`+"\n"+`{"kind":"sealed","n":2}`+"\n"+`{"kind":"sea`)
	var kinds []string
	var failed error
	for line, err := range client.Audit(t.Context()) {
		if failed = err; err == nil {
			kinds = append(kinds, line.Kind)
		}
	}
	assert.Equal(t, []string{api.KindProcess, api.KindSealed}, kinds)
	assert.ErrorContains(t, failed, "audit trail", "a part is not the whole")
	for range client.Audit(t.Context()) {
		break // ends the request
	}
	client, _ = serve(t, 500, strings.Repeat("x", 1<<17))
	for _, err := range client.Audit(t.Context()) {
		assert.True(t, api.IsCode(err, api.CodeInternal), err)
	}
}
