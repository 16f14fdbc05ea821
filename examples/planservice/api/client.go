package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// Client calls a planservice. It may be used concurrently.
type Client struct {
	base string
	http *http.Client
}

// NewClient returns a client of the service at base, as "http://127.0.0.1:8080". A nil
// client stands for http.DefaultClient.
func NewClient(base string, client *http.Client) *Client {
	if client == nil {
		client = http.DefaultClient
	}
	return &Client{strings.TrimRight(base, "/"), client}
}

// CreateAction creates an action; CodeExists if its name is taken.
func (c *Client) CreateAction(ctx context.Context, a Action) (Stored[Action], error) {
	return call[Stored[Action]](ctx, c, "POST", "/v1/actions", a)
}

// Action returns an action and its version.
func (c *Client) Action(ctx context.Context, name string) (Stored[Action], error) {
	return call[Stored[Action]](ctx, c, "GET", "/v1/actions/"+url.PathEscape(name), nil)
}

// Actions lists all actions, by name.
func (c *Client) Actions(ctx context.Context) ([]Stored[Action], error) {
	return call[[]Stored[Action]](ctx, c, "GET", "/v1/actions", nil)
}

// PutAction replaces an action that has the version; CodeConflict if it has another one.
func (c *Client) PutAction(ctx context.Context, name string, version uint64, a Action) (Stored[Action], error) {
	return call[Stored[Action]](ctx, c, "PUT", "/v1/actions/"+url.PathEscape(name), a, "If-Match", ETag(version))
}

// CreatePlan creates a plan; CodeExists if its name is taken.
func (c *Client) CreatePlan(ctx context.Context, p Plan) (Stored[Plan], error) {
	return call[Stored[Plan]](ctx, c, "POST", "/v1/plans", p)
}

// Plan returns a plan and its version.
func (c *Client) Plan(ctx context.Context, name string) (Stored[Plan], error) {
	return call[Stored[Plan]](ctx, c, "GET", "/v1/plans/"+url.PathEscape(name), nil)
}

// Plans lists all plans, by name.
func (c *Client) Plans(ctx context.Context) ([]Stored[Plan], error) {
	return call[[]Stored[Plan]](ctx, c, "GET", "/v1/plans", nil)
}

// PutPlan replaces a plan that has the version; CodeConflict if it has another one.
func (c *Client) PutPlan(ctx context.Context, name string, version uint64, p Plan) (Stored[Plan], error) {
	return call[Stored[Plan]](ctx, c, "PUT", "/v1/plans/"+url.PathEscape(name), p, "If-Match", ETag(version))
}

// CreateStrategy makes an endpoint known as a strategy; CodeExists if its name is taken.
func (c *Client) CreateStrategy(ctx context.Context, s Strategy) (Stored[Strategy], error) {
	return call[Stored[Strategy]](ctx, c, "POST", "/v1/strategies", s)
}

// Strategy returns a strategy and its version.
func (c *Client) Strategy(ctx context.Context, name string) (Stored[Strategy], error) {
	return call[Stored[Strategy]](ctx, c, "GET", "/v1/strategies/"+url.PathEscape(name), nil)
}

// PutStrategy gives a strategy that has the version another URL; CodeConflict if it has
// another version.
func (c *Client) PutStrategy(ctx context.Context, name string, version uint64, s Strategy) (Stored[Strategy], error) {
	return call[Stored[Strategy]](ctx, c, "PUT", "/v1/strategies/"+url.PathEscape(name), s, "If-Match", ETag(version))
}

// Strategies lists all strategies, by name.
func (c *Client) Strategies(ctx context.Context) ([]Stored[Strategy], error) {
	return call[[]Stored[Strategy]](ctx, c, "GET", "/v1/strategies", nil)
}

// Run runs a plan and waits for all of its strategies.
func (c *Client) Run(ctx context.Context, plan string, r RunPlan) (Run, error) {
	return call[Run](ctx, c, "POST", "/v1/plans/"+url.PathEscape(plan)+"/run", r)
}

// ApplyPlan seals and applies all changesets of a plan that are not applied yet. Each
// is applied under the key KEY/CHANGESET. An empty key stands for the plan's name.
func (c *Client) ApplyPlan(ctx context.Context, plan, key string, a ApplyChangeset) ([]Applied, error) {
	return call[[]Applied](ctx, c, "POST", "/v1/plans/"+url.PathEscape(plan)+"/apply", a, "Idempotency-Key", key)
}

// StartChangeset starts a changeset, which becomes the current one.
func (c *Client) StartChangeset(ctx context.Context, plan string) (Changeset, error) {
	return call[Changeset](ctx, c, "POST", "/v1/changesets", StartChangeset{plan})
}

// Changesets lists all changesets, the oldest first.
func (c *Client) Changesets(ctx context.Context) ([]Changeset, error) {
	return call[[]Changeset](ctx, c, "GET", "/v1/changesets", nil)
}

// Record records a change in the current changeset.
func (c *Client) Record(ctx context.Context, change Change) (Receipt, error) {
	return call[Receipt](ctx, c, "POST", "/v1/changes", change)
}

// Seal seals a changeset. To seal it again changes nothing.
func (c *Client) Seal(ctx context.Context, changeset string) (Changeset, error) {
	return call[Changeset](ctx, c, "POST", "/v1/changesets/"+url.PathEscape(changeset)+"/seal", nil)
}

// Apply seals a changeset and writes its changes to a database, once for a key. An
// empty key stands for the changeset's ID.
func (c *Client) Apply(ctx context.Context, changeset, key string, a ApplyChangeset) (Applied, error) {
	return call[Applied](ctx, c, "POST", "/v1/changesets/"+url.PathEscape(changeset)+"/apply", a, "Idempotency-Key", key)
}

// Engines lists the engines that are open and that the service would use.
func (c *Client) Engines(ctx context.Context) ([]Engine, error) {
	return call[[]Engine](ctx, c, "GET", "/v1/engines", nil)
}

// Breakers lists the breakers of all strategies, by name.
func (c *Client) Breakers(ctx context.Context) ([]Breaker, error) {
	return call[[]Breaker](ctx, c, "GET", "/v1/breakers", nil)
}

// ResetBreaker closes the breaker of a strategy.
func (c *Client) ResetBreaker(ctx context.Context, strategy string) error {
	_, err := call[struct{}](ctx, c, "POST", "/v1/breakers/"+url.PathEscape(strategy)+"/reset", nil)
	return err
}

// ResetBreakers closes all breakers.
func (c *Client) ResetBreakers(ctx context.Context) error {
	_, err := call[struct{}](ctx, c, "POST", "/v1/breakers/reset", nil)
	return err
}

// Status returns what the status page shows.
func (c *Client) Status(ctx context.Context) (Status, error) {
	return call[Status](ctx, c, "GET", "/v1/status", nil)
}

// Ready returns nil if the service accepts work.
func (c *Client) Ready(ctx context.Context) error {
	r, err := c.do(ctx, "GET", "/readyz", nil)
	if err != nil {
		return err
	}
	return r.Body.Close()
}

// Audit yields the lines of the audit trail. If it fails, it yields the error and ends.
func (c *Client) Audit(ctx context.Context) iter.Seq2[AuditLine, error] {
	return func(yield func(AuditLine, error) bool) {
		r, err := c.do(ctx, "GET", "/v1/audit", nil)
		if err != nil {
			yield(AuditLine{}, err)
			return
		}
		defer r.Body.Close()
		for d := json.NewDecoder(r.Body); ; {
			var line AuditLine
			switch err := d.Decode(&line); {
			case err == io.EOF:
				return
			case err != nil:
				yield(AuditLine{}, fmt.Errorf("planservice: audit trail: %w", err))
				return
			case !yield(line, nil):
				return
			}
		}
	}
}

// ETag returns the ETag of a version.
func ETag(version uint64) string { return strconv.Quote(strconv.FormatUint(version, 10)) }

func call[T any](ctx context.Context, c *Client, method, path string, body any, header ...string) (result T, err error) {
	r, err := c.do(ctx, method, path, body, header...)
	if err != nil {
		return result, err
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusNoContent {
		err = json.NewDecoder(r.Body).Decode(&result)
	}
	if err != nil {
		return result, fmt.Errorf("planservice: answer of %s %s: %w", method, path, err)
	}
	_, err = io.Copy(io.Discard, r.Body) // so that the connection can be used again
	return result, err
}

// do returns an answer whose body the caller closes, or an *Error.
func (c *Client) do(ctx context.Context, method, path string, body any, header ...string) (*http.Response, error) {
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("planservice: %w", err)
		}
		content = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(ctx, method, c.base+path, content)
	if err != nil {
		return nil, fmt.Errorf("planservice: %w", err)
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		if header[i+1] != "" {
			request.Header.Set(header[i], header[i+1])
		}
	}
	r, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	if r.StatusCode < 400 {
		return r, nil
	}
	defer r.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(r.Body, 1<<16))
	var e ErrorBody
	if json.Unmarshal(text, &e) != nil || e.Error == nil {
		e.Error = &Error{Code: CodeInternal, Message: strings.TrimSpace(string(text))}
	}
	e.Error.Status = r.StatusCode
	return nil, e.Error
}
