package dashboard

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	grafana "github.com/grafana/grafana-foundation-sdk/go/dashboard"
	query "github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
	"github.com/grafana/grafana-foundation-sdk/go/units"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

//lint:ignore SA1019 The file has the first schema, which all versions of Grafana import.
type board = grafana.Dashboard

// load returns the dashboard, in which Grafana's schema has all fields and allows all values.
func load(t *testing.T) board {
	t.Helper()
	runtime := cog.NewRuntime()
	runtime.RegisterPanelcfgVariant(timeseries.VariantConfig())
	runtime.RegisterDataqueryVariant(query.VariantConfig())
	text, err := os.ReadFile("testdata/dashboard.json")
	require.NoError(t, err)
	require.NoError(t, real(new(board).UnmarshalJSONStrict(text)))
	var raw struct {
		Panels []struct{ Targets []json.RawMessage }
	}
	require.NoError(t, json.Unmarshal(text, &raw))
	for i, p := range raw.Panels {
		for _, q := range p.Targets {
			require.NoError(t, real(new(query.Dataquery).UnmarshalJSONStrict(q)), "panels[%d]: %s", i, q)
		}
	}
	var d board // again, since a strict one has no queries, for the same reason as real
	require.NoError(t, json.Unmarshal(text, &d))
	require.NoError(t, real(d.Validate()))
	return d
}

// real returns err, or nil for an empty list of errors, which is what the functions of the
// SDK return if there is none.
func real(err error) error {
	if list, ok := err.(cog.BuildErrors); ok && len(list) == 0 {
		return nil
	}
	return err
}

// panels returns the panels that are no rows.
func panels(t *testing.T) (all []grafana.Panel) {
	t.Helper()
	for _, p := range load(t).Panels {
		if p.Panel != nil {
			all = append(all, *p.Panel)
		}
	}
	require.NotEmpty(t, all)
	return all
}

// queries returns the queries of a panel.
func queries(t *testing.T, p grafana.Panel) (all []*query.Dataquery) {
	t.Helper()
	for _, target := range p.Targets {
		q, ok := target.(*query.Dataquery)
		require.True(t, ok, "%s: %T", *p.Title, target)
		all = append(all, q)
	}
	require.NotEmpty(t, all, *p.Title)
	return all
}

func TestSchema(t *testing.T) {
	d := load(t)
	assert.NotEmpty(t, d.Uid)
	assert.NotEmpty(t, d.Title)
	variable := d.Templating.List[0]
	assert.Equal(t, grafana.VariableTypeDatasource, variable.Type)
	assert.Equal(t, "prometheus", *variable.Query.String)
	source := "${" + variable.Name + "}"
	for _, p := range panels(t) {
		assert.Equal(t, "timeseries", p.Type, *p.Title)
		assert.Equal(t, source, *p.Datasource.Uid, *p.Title)
		assert.Contains(t, []string{units.Short, units.OpsPerSecond, units.Seconds, units.PercentUnit, units.BytesIEC, units.BytesPerSecondSI},
			*p.FieldConfig.Defaults.Unit, *p.Title)
		refs := make(map[string]bool)
		for _, q := range queries(t, p) {
			assert.Equal(t, source, *q.Datasource.Uid, q.Expr)
			assert.False(t, refs[*q.RefId], "%s has two queries %s", *p.Title, *q.RefId)
			refs[*q.RefId] = true
		}
	}
}

// Panels lie in the grid, do not overlap, and have ids of their own.
func TestLayout(t *testing.T) {
	type box struct {
		id         uint32
		x, y, w, h uint32
		title      string
	}
	var boxes []box
	for _, p := range load(t).Panels {
		if r := p.RowPanel; r != nil {
			boxes = append(boxes, box{r.Id, r.GridPos.X, r.GridPos.Y, r.GridPos.W, r.GridPos.H, *r.Title})
		} else {
			g := p.Panel.GridPos
			boxes = append(boxes, box{*p.Panel.Id, g.X, g.Y, g.W, g.H, *p.Panel.Title})
		}
	}
	for i, a := range boxes {
		assert.LessOrEqual(t, a.x+a.w, uint32(24), a.title)
		for _, b := range boxes[:i] {
			assert.NotEqual(t, a.id, b.id, a.title)
			assert.False(t, a.x < b.x+b.w && b.x < a.x+a.w && a.y < b.y+b.h && b.y < a.y+a.h, "%s is over %s", a.title, b.title)
		}
	}
}

// Each query parses, asks for metrics and labels that there are, takes the rate of counters
// and of nothing else, and its legend has labels that its result has. Each metric is asked for.
func TestQueries(t *testing.T) {
	known := metrics(t)
	asked := make(map[string]bool)
	legend := regexp.MustCompile(`{{([^}]*)}}`)
	for _, p := range panels(t) {
		for _, q := range queries(t, p) {
			result, err := check(q.Expr, known, asked)
			if !assert.NoError(t, err, "%s: %s", *p.Title, q.Expr) {
				continue
			}
			for _, label := range legend.FindAllStringSubmatch(*q.LegendFormat, -1) {
				assert.Contains(t, result, strings.TrimSpace(label[1]), q.Expr)
			}
			for _, label := range result {
				assert.Contains(t, *q.LegendFormat, "{{"+label+"}}", "two series of %s have one legend", q.Expr)
			}
		}
	}
	var missing []string
	for name := range known {
		if !asked[name] {
			missing = append(missing, name)
		}
	}
	slices.Sort(missing)
	assert.Empty(t, missing)
}
