package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/examples/planservice/api"
)

// A probe goes on when its first write is lost, whatever becomes of that: it may never be
// stored, or be there when the probe creates it.
func TestProbeLosesItsFirstWrite(t *testing.T) {
	for name, answers := range map[string][]api.Code{
		"never stored": {"PUT " + api.CodeUnavailable, "GET " + api.CodeNotFound, "PUT " + api.CodeNotFound, "POST "},
		"stored later": {"PUT " + api.CodeNotFound, "POST " + api.CodeUnknown, "GET " + api.CodeNotFound, "PUT " + api.CodeNotFound, "POST " + api.CodeExists, "GET "},
	} {
		t.Run(name, func(t *testing.T) {
			during, end := context.WithCancel(t.Context())
			defer end()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == "POST" && r.URL.Path != "/v1/actions" { // of a change
					_ = json.NewEncoder(w).Encode(api.Receipt{})
					return
				}
				if len(answers) == 0 {
					end()
					_ = json.NewEncoder(w).Encode(api.Stored[api.Action]{})
					return
				}
				code, ok := answers[0][len(r.Method)+1:], answers[0][:len(r.Method)] == api.Code(r.Method)
				answers = answers[1:]
				if !ok {
					t.Errorf("%s %s, and %s are left", r.Method, r.URL, answers)
				}
				if code != "" {
					w.WriteHeader(http.StatusBadRequest)
					_ = json.NewEncoder(w).Encode(api.ErrorBody{Error: &api.Error{Code: code}})
					return
				}
				_ = json.NewEncoder(w).Encode(api.Stored[api.Action]{})
			}))
			defer server.Close()
			client := api.NewClient(server.URL, nil)
			l := &storming{service: &service{replicas: []*api.Client{client, client}}, told: newReceipts(), during: during, defects: defects{}, load: &load{}}
			require.NoError(t, newOutages().probe(t.Context(), l, 0))
			require.Empty(t, answers)
		})
	}
}
