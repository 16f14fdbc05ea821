package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/examples/planservice/api"
)

// built builds the service once, as the tests were built.
var built = sync.OnceValues(func() (string, error) {
	var flags []string
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "-race" && s.Value == "true" {
				flags = []string{"-race"}
			}
		}
	}
	binary, remove, err := build(context.Background(), flags...)
	if err == nil {
		cleanUp = remove
	}
	return binary, err
})

var cleanUp = func() {}

func TestMain(m *testing.M) {
	code := m.Run()
	cleanUp()
	os.Exit(code)
}

// A cluster loses nothing when a replica is killed under load and comes back.
func TestCluster(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: three replicas are started, and one is killed and comes back")
	}
	t.Parallel()
	binary, err := built()
	require.NoError(t, err)
	r, err := storm(t.Context(), binary, plan{store: "clustered", clients: 8, duration: 2400 * time.Millisecond, kills: []string{"changesets"}, arguments: []string{"-nosync"}}, t.Output())
	require.NoError(t, err)
	require.Zero(t, r.defects.sum(), "%v", r.defects)
	require.Equal(t, 1, r.outages.kills)
	require.Positive(t, r.load.lost, "of the clients of the replica that was killed")
	require.Greater(t, len(r.load.took), 10, "operations")
	// Hints are heard or not: the stream may have no leader for longer than the report takes.
	t.Logf("%d operations, %d lost, %d trips heard of, a survivor waited %v, the killed replica %v",
		len(r.load.took), r.load.lost, r.load.heard, r.outages.gaps, r.outages.longest)
}

// The reports' algorithms show defects of all four reports, the others show none.
func TestStorm(t *testing.T) {
	t.Parallel()
	binary, err := built()
	require.NoError(t, err)
	for _, store := range []string{"naive", "locked", "latchfree"} {
		t.Run(store, func(t *testing.T) {
			found := defects{}
			for range 10 { // on a busy machine the clients may do little while one report is replayed
				var progress bytes.Buffer
				r, err := storm(t.Context(), binary, plan{store: store, clients: 8, duration: 1200 * time.Millisecond,
					arguments: []string{"-store", store, "-pause", "1ms"}}, &progress)
				require.NoError(t, err)
				require.Greater(t, len(r.load.took), 10, "operations")
				longest := quantile(r.load.others, 1)
				t.Log("everybody else waited up to", longest)
				if store == "locked" {
					require.Greater(t, longest, slowOpen/2, "for the mutex")
				}
				require.Contains(t, finding([]result{r}), store)
				if store != "naive" {
					require.Zero(t, r.defects.sum(), "%v", r.defects)
					return
				}
				for kind, n := range r.defects {
					found[kind] += n
				}
				if found["updates lost"] > 0 && found["failures lost"] > 0 && found["second engines"] > 0 {
					return
				}
			}
			t.Fatalf("the store of the reports shows no defect of some kind: %v", found)
		})
	}
}

// The sentence says what the numbers are.
func TestFinding(t *testing.T) {
	load := func(late time.Duration, others ...time.Duration) *load { return &load{others: others, late: late} }
	require.Equal(t, "While a database took 300ms to open, a strategy stalled and an apply took 1s, everybody else waited up to 303ms with locked, "+
		"up to 16ms with latchfree, and a timer alone up to 8ms; operations that went wrong: 5 with locked, 0 with latchfree.",
		finding([]result{
			{store: "locked", defects: defects{"updates lost": 2, "failures lost": 3}, load: load(7*time.Millisecond, 303*time.Millisecond, time.Millisecond)},
			{store: "latchfree", load: load(8*time.Millisecond, 16*time.Millisecond)},
		}))
	require.Equal(t, "Operations that went wrong: 0 with clustered.", finding([]result{{store: "clustered", load: load(0)}}))
}

// The receipts of changes and the answers to applies hold over a kill -9 under load.
func TestKilled(t *testing.T) {
	t.Parallel()
	binary, err := built()
	require.NoError(t, err)
	dir := t.TempDir()
	arguments := []string{"-journal", filepath.Join(dir, "trail"), "-db", filepath.Join(dir, "plans.db")}
	told := newReceipts()
	var mu sync.Mutex
	applied := map[string]api.Applied{} // by changeset

	for round := range 2 {
		s, err := start(t.Context(), binary, 1, arguments...)
		require.NoError(t, err)
		ctx := t.Context()
		if round == 0 {
			_, err = s.CreateAction(ctx, api.Action{Name: "count"})
			require.NoError(t, err)
			_, err = s.CreatePlan(ctx, api.Plan{Name: "storm", Actions: []string{"count"}, Strategies: []string{api.Direct}})
			require.NoError(t, err)
		}
		current, err := s.StartChangeset(ctx, "storm")
		require.NoError(t, err)
		var clients sync.WaitGroup
		for client := range 4 {
			clients.Go(func() {
				for i := 0; ; i++ {
					id := fmt.Sprintf("%d-%d-%d", round, client, i)
					receipt, err := s.Record(ctx, api.Change{ID: id, Plan: "storm", Action: "count"})
					if err != nil {
						return // it was killed
					}
					told.recorded(receipt)
				}
			})
		}
		clients.Go(func() {
			for {
				c := current
				if current, err = s.StartChangeset(ctx, "storm"); err != nil {
					return
				}
				if _, err := s.Seal(ctx, c.ID); err != nil {
					return
				}
				a, err := s.Apply(ctx, c.ID, "key-"+c.ID, api.ApplyChangeset{})
				if err != nil {
					return
				}
				mu.Lock()
				applied[c.ID] = a
				mu.Unlock()
			}
		})
		enough := func() bool {
			told.mu.Lock()
			defer told.mu.Unlock()
			mu.Lock()
			defer mu.Unlock()
			return len(told.changes) >= 50*(round+1) && len(applied) > 3*round
		}
		require.Eventually(t, enough, time.Minute, time.Millisecond)
		s.kill()
		clients.Wait()
	}

	s, err := start(t.Context(), binary, 1, arguments...)
	require.NoError(t, err)
	defer func() { require.NoError(t, s.stop()) }()
	for id, was := range applied {
		now, err := s.Apply(t.Context(), id, "key-"+id, api.ApplyChangeset{})
		require.NoError(t, err)
		require.True(t, now.Replayed)
		require.Equal(t, was.Changes, now.Changes)
	}
	d := defects{}
	trails, err := readTrails(t.Context(), s)
	require.NoError(t, err)
	compareTrails(trails, told, d)
	require.Zero(t, d.sum(), "of %d changes: %v", len(told.changes), d)
	writes := map[string]int{}
	for line, err := range s.Audit(t.Context()) {
		require.NoError(t, err)
		if line.Kind == api.KindApplied && !line.Replayed {
			writes[line.Changeset]++
		}
	}
	for id, n := range writes {
		require.Equal(t, 1, n, "%s was applied more than once", id)
	}
}
