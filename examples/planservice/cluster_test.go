package main

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/examples/planservice/api"
	"github.com/latchfree/latchfree/examples/planservice/internal/node"
)

// commandVariable makes the test's program the command, as which it starts replicas.
const commandVariable = "PLANSERVICE_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(commandVariable) != "" {
		main()
		os.Exit(0)
	}
	os.Setenv(commandVariable, "1") // for processes that tests start
	os.Exit(m.Run())
}

// startCluster runs the command with -cluster as a process, which the test ends.
func startCluster(t *testing.T, arguments ...string) (replicas []*api.Client, process *exec.Cmd, log *output) {
	t.Helper()
	log = &outputBuffer{}
	process = exec.Command(os.Args[0], append([]string{"-cluster", "-addr", "127.0.0.1:0", "-nosync"}, arguments...)...)
	process.Stderr = log
	process.WaitDelay = time.Minute // replicas may live longer, and have its standard error
	require.NoError(t, process.Start())
	t.Cleanup(func() { process.Process.Kill() })
	serves := regexp.MustCompile(`msg="the cluster serves" urls="([^"]*)"`)
	require.Eventually(t, func() bool { return serves.MatchString(log.String()) }, time.Minute, time.Millisecond, "%v", log)
	for _, url := range strings.Fields(serves.FindStringSubmatch(log.String())[1]) {
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		replicas = append(replicas, api.NewClient(url, client))
	}
	require.Len(t, replicas, 3)
	return replicas, process, log
}

// A replica that cannot listen is an error, and ends the others.
func TestClusterPortInUse(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: three replicas are started")
	}
	t.Parallel()
	var first string
	var taken net.Listener
	for range 100 { // the next port may be taken already
		free, err := node.FreeAddresses("127.0.0.1", 1)
		require.NoError(t, err)
		first = free[0]
		host, port, err := net.SplitHostPort(first)
		require.NoError(t, err)
		n, err := strconv.Atoi(port)
		require.NoError(t, err)
		if taken, err = net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(n+1))); err == nil {
			break
		}
	}
	require.NotNil(t, taken)
	defer taken.Close()
	err := run(t.Context(), []string{"-cluster", "-nosync", "-addr", first}, &outputBuffer{}, func(net.Addr) {})
	assert.ErrorContains(t, err, "replica 1 has ended before it listened")
}

// What a replica has acknowledged is at all of them, and there still when all have ended and
// come back. No replica outlives its supervisor.
func TestClusterRestarts(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: three replicas are started, twice")
	}
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	ctx := t.Context()
	replicas, process, log := startCluster(t, "-data", data, "-strategy", "remote=http://127.0.0.1:1/")
	action, err := replicas[0].CreateAction(ctx, api.Action{Name: "Backup"})
	require.NoError(t, err)
	changed, err := replicas[0].PutAction(ctx, "backup", action.Version, api.Action{Description: "second"})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		_, err := replicas[1].CreatePlan(ctx, api.Plan{Name: "Nightly", Actions: []string{"backup"}, Strategies: []string{"direct", "remote"}})
		return err == nil || !assert.True(t, api.IsCode(err, api.CodeInvalid), err)
	}, time.Minute, time.Millisecond)
	var run api.Run
	require.Eventually(t, func() bool {
		run, err = replicas[2].Run(ctx, "nightly", api.RunPlan{Start: true})
		return err == nil || !assert.True(t, api.IsCode(err, api.CodeNotFound), err)
	}, time.Minute, time.Millisecond)
	require.Len(t, run.Results[0].Receipts, 1)
	changeset := run.Results[0].Receipts[0].Changeset
	_, err = replicas[1].Apply(ctx, changeset, "key", api.ApplyChangeset{})
	assert.True(t, api.IsCode(err, api.CodeElsewhere), err)
	_, err = replicas[2].Seal(ctx, changeset)
	require.NoError(t, err)
	_, err = replicas[1].Apply(ctx, changeset, "key", api.ApplyChangeset{Database: "memory:mine"})
	assert.True(t, api.IsCode(err, api.CodeElsewhere), "only the database that all share: %v", err)
	applied, err := replicas[1].Apply(ctx, changeset, "key", api.ApplyChangeset{})
	require.NoError(t, err)
	assert.Equal(t, 1, applied.Changes)
	assert.False(t, applied.Replayed)
	for _, r := range replicas {
		again, err := r.Apply(ctx, changeset, "key", api.ApplyChangeset{})
		require.NoError(t, err)
		assert.True(t, again.Replayed)
		assert.NoError(t, r.Ready(ctx))
	}

	// A run that has begun is finished, for which this replica needs the others.
	called, proceed := make(chan struct{}), make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { close(called); <-proceed }))
	defer slow.Close()
	_, err = replicas[0].CreateStrategy(ctx, api.Strategy{Name: "slow", URL: slow.URL})
	require.NoError(t, err)
	_, err = replicas[0].CreatePlan(ctx, api.Plan{Name: "slow", Actions: []string{"backup"}, Strategies: []string{"slow"}})
	require.NoError(t, err)
	_, err = replicas[0].StartChangeset(ctx, "slow")
	require.NoError(t, err)
	finished := make(chan api.Run, 1)
	go func() {
		run, err := replicas[0].Run(ctx, "slow", api.RunPlan{})
		assert.NoError(t, err)
		finished <- run
	}()
	<-called
	require.NoError(t, process.Process.Signal(syscall.SIGTERM))
	require.Eventually(t, func() bool { return strings.Count(log.String(), `msg="shutting down"`) == 3 }, time.Minute, time.Millisecond)
	for _, r := range replicas[1:] { // they have nothing left to do
		require.Eventually(t, func() bool { return r.Ready(ctx) != nil }, time.Minute, time.Millisecond)
	}
	close(proceed)
	run = <-finished
	if assert.Len(t, run.Results, 1) {
		assert.Len(t, run.Results[0].Receipts, 1, run.Results[0].Error)
	}
	require.NoError(t, process.Wait(), "%v", log)
	assert.Equal(t, 3, strings.Count(log.String(), `msg=stopped`), log)
	assert.NotContains(t, log.String(), "level=ERROR")

	replicas, process, log = startCluster(t, "-data", data)
	for _, r := range replicas {
		action, err := r.Action(ctx, "backup")
		require.NoError(t, err)
		assert.Equal(t, changed, action)
		strategy, err := r.Strategy(ctx, "remote")
		require.NoError(t, err)
		assert.Equal(t, "http://127.0.0.1:1/", strategy.Value.URL)
	}
	again, err := replicas[0].Apply(ctx, changeset, "key", api.ApplyChangeset{})
	require.NoError(t, err)
	assert.True(t, again.Replayed)
	lines := 0
	for line, err := range replicas[2].Audit(ctx) {
		require.NoError(t, err)
		if line.Kind == api.KindStarted || line.Kind == api.KindChange {
			lines++
		}
	}
	assert.Equal(t, 2, lines, "the trail and the journal are kept")
	require.NoError(t, process.Process.Kill())
	process.Wait() // until all have closed their standard error
	for _, r := range replicas {
		assert.Error(t, r.Ready(ctx), log)
	}
}

func TestClusterArguments(t *testing.T) {
	for _, arguments := range [][]string{
		{"-cluster", "-store", "locked"}, {"-cluster", "-journal", t.TempDir()}, {"-data", t.TempDir()}, {"-store", "clustered"},
		{"-replica", "0"}, {"-replica", "1", "-peers", "127.0.0.1:1", "-data", t.TempDir()}, {"-replica", "0", "-data", t.TempDir()},
		{"-cluster", "-addr", "nowhere"}, {"-cluster", "-addr", "127.0.0.1:x"}, {"-cluster", "-addr", "192.0.2.1:0"},
		{"-cluster", "-strategy", "x=ftp://host/"}, {"-cluster", "-workers", "-1"}, {"-cluster", "-data", "/dev/null/x"}, {"-cluster", "-unknown"},
	} {
		err := run(context.Background(), append([]string{"-addr", "127.0.0.1:0"}, arguments...), &outputBuffer{}, func(net.Addr) {
			t.Errorf("%q were accepted", arguments)
		})
		assert.Error(t, err, arguments)
	}
}
