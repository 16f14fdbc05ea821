package main

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/examples/planservice/api"
)

// start runs the command at a port of its own. Stop does what SIGTERM does, and waits.
func start(t *testing.T, arguments ...string) (client *api.Client, stop func() error, output *output) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	output = &outputBuffer{}
	address, ended := make(chan net.Addr, 1), make(chan error, 1)
	go func() {
		ended <- run(ctx, append([]string{"-addr", "127.0.0.1:0", "-nosync"}, arguments...), output, func(a net.Addr) { address <- a })
	}()
	var once sync.Once
	var err error
	stop = func() error {
		once.Do(func() { cancel(); err = <-ended })
		return err
	}
	t.Cleanup(func() { stop() })
	select {
	case a := <-address:
		return api.NewClient("http://"+a.String(), nil), stop, output
	case err := <-ended:
		ended <- err
		require.NoError(t, err)
	}
	return nil, nil, nil
}

type output = outputBuffer

// outputBuffer may be read while the command writes.
type outputBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *outputBuffer) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *outputBuffer) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

func TestRestartKeepsEverything(t *testing.T) {
	folder := t.TempDir()
	arguments := []string{"-journal", filepath.Join(folder, "a", "trail"), "-db", filepath.Join(folder, "plans ?#%.db"), "-strategy", "remote=http://127.0.0.1:1/"}
	ctx := t.Context()
	client, stop, _ := start(t, arguments...)
	_, err := client.CreateAction(ctx, api.Action{Name: "Backup"})
	require.NoError(t, err)
	_, err = client.PutAction(ctx, "backup", 1, api.Action{Description: "second"})
	require.NoError(t, err)
	_, err = client.CreatePlan(ctx, api.Plan{Name: "Nightly", Actions: []string{"backup"}})
	require.NoError(t, err)
	run, err := client.Run(ctx, "nightly", api.RunPlan{Start: true})
	require.NoError(t, err)
	require.Len(t, run.Results[0].Receipts, 1)
	first, err := client.ApplyPlan(ctx, "nightly", "key", api.ApplyChangeset{})
	require.NoError(t, err)
	require.Len(t, first, 1)
	_, err = client.StartChangeset(ctx, "nightly")
	require.NoError(t, err)
	receipt, err := client.Record(ctx, api.Change{ID: "late", Plan: "nightly"})
	require.NoError(t, err)
	require.NoError(t, stop())

	client, stop, _ = start(t, arguments...)
	action, err := client.Action(ctx, "Backup")
	require.NoError(t, err)
	assert.Equal(t, api.Action{Name: "backup", Description: "second"}, action.Value)
	// A client that read version 3 of a process that was killed must not match another 3.
	assert.Greater(t, action.Version, uint64(1<<31))
	_, err = client.PutAction(ctx, "backup", 3, api.Action{})
	assert.True(t, api.IsCode(err, api.CodeConflict), err)
	fresh, err := client.CreateAction(ctx, api.Action{Name: "fresh"})
	require.NoError(t, err)
	assert.Greater(t, fresh.Version, uint64(1<<31))
	_, err = client.CreatePlan(ctx, api.Plan{Name: "nightly", Actions: []string{"backup"}})
	assert.True(t, api.IsCode(err, api.CodeExists), err)
	strategies, err := client.Strategies(ctx)
	require.NoError(t, err)
	require.Len(t, strategies, 2)
	assert.Equal(t, api.Strategy{Name: "direct"}, strategies[0].Value)
	assert.Equal(t, api.Strategy{Name: "remote", URL: "http://127.0.0.1:1/"}, strategies[1].Value)
	again, err := client.ApplyPlan(ctx, "nightly", "key", api.ApplyChangeset{})
	require.NoError(t, err)
	require.Len(t, again, 2)
	assert.True(t, again[0].Replayed)
	assert.Equal(t, first[0].Changes, again[0].Changes)
	assert.Equal(t, receipt.Changeset, again[1].Changeset)
	assert.False(t, again[1].Replayed)
	processes, changes := 0, map[string]string{}
	for line, err := range client.Audit(ctx) {
		require.NoError(t, err)
		switch line.Kind {
		case api.KindProcess:
			processes++
		case api.KindChange:
			changes[line.Change.ID] = line.Changeset
		}
	}
	assert.Equal(t, 2, processes)
	assert.Equal(t, map[string]string{"late": receipt.Changeset, run.Results[0].Receipts[0].Change: first[0].Changeset}, changes)
	require.NoError(t, stop())
}

// Shutdown ends streams of events and waits for a run that has begun.
func TestShutdownFinishesARun(t *testing.T) {
	called, proceed := make(chan struct{}), make(chan struct{})
	strategy := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { close(called); <-proceed }))
	defer strategy.Close()
	client, stop, output := start(t, "-strategy", "slow="+strategy.URL)
	ctx := t.Context()
	_, err := client.CreateAction(ctx, api.Action{Name: "a"})
	require.NoError(t, err)
	_, err = client.CreatePlan(ctx, api.Plan{Name: "p", Actions: []string{"a"}, Strategies: []string{"slow"}})
	require.NoError(t, err)
	type result struct {
		run api.Run
		err error
	}
	ran, stopped := make(chan result, 1), make(chan error, 1)
	go func() {
		run, err := client.Run(ctx, "p", api.RunPlan{Start: true})
		ran <- result{run, err}
	}()
	<-called
	go func() { stopped <- stop() }()
	require.Eventually(t, func() bool { return bytes.Contains([]byte(output.String()), []byte("shutting down")) }, time.Minute, time.Millisecond)
	select {
	case err := <-stopped:
		t.Fatalf("the service stopped before its run ended: %v", err)
	default:
	}
	close(proceed)
	r := <-ran
	require.NoError(t, r.err)
	assert.Len(t, r.run.Results[0].Receipts, 1)
	require.NoError(t, <-stopped)
	assert.Error(t, client.Ready(ctx))
}

// With -demo there is something to see, and the demo ends with the service.
func TestDemo(t *testing.T) {
	client, stop, output := start(t, "-demo")
	require.EventuallyWithT(t, func(t *assert.CollectT) {
		status, err := client.Status(context.Background())
		assert.NoError(t, err)
		assert.NotEmpty(t, status.Plans)
		assert.Positive(t, status.Counts.Applied)
	}, time.Minute, 10*time.Millisecond)
	require.NoError(t, stop())
	assert.NotContains(t, output.String(), "level=ERROR")
	assert.NotContains(t, output.String(), "level=WARN")
}

// The lines with curl in README.md work as printed, and answer what is printed beneath, with any
// text for "…".
func TestREADMECurl(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("no curl in PATH")
	}
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	lines := regexp.MustCompile(`(?m)^    (curl .*)\n    (\{.*)$`).FindAllStringSubmatch(string(readme), -1)
	require.Len(t, lines, 3)
	for _, arguments := range [][]string{nil, {"-demo"}} {
		_, stop, output := start(t, arguments...)
		address := regexp.MustCompile(`msg=listening url=http://(\S+)`).FindStringSubmatch(output.String())[1]
		for _, line := range lines {
			command := exec.Command("sh", "-c", strings.ReplaceAll(line[1], "127.0.0.1:8080", address))
			answer, err := command.Output()
			require.NoError(t, err, line[1])
			want := strings.ReplaceAll(regexp.QuoteMeta(line[2]), "…", ".+")
			assert.Regexp(t, "^"+want+"\n$", string(answer), line[1])
		}
		require.NoError(t, stop())
	}
}

func TestArguments(t *testing.T) {
	for _, arguments := range [][]string{
		{"-store", "other"}, {"-store", "naive", "-journal", t.TempDir()}, {"-threshold", "-1"}, {"-queue", "3"}, {"-workers", "-1"}, {"-memory-databases", "-1"},
		{"-timeout", "-1s"}, {"-strategy", "x"}, {"-strategy", "x=ftp://host/"}, {"-strategy", "direct=http://host/"}, {"extra"}, {"-unknown"},
		{"-addr", "nowhere:x"}, {"-journal", "/dev/null/x"}, {"-open-timeout", "-1ns", "-threshold", "0", "-pause", "-1s"},
	} {
		err := run(context.Background(), append([]string{"-addr", "127.0.0.1:0"}, arguments...), &outputBuffer{}, func(net.Addr) {
			t.Errorf("%q were accepted", arguments)
		})
		assert.Error(t, err, arguments)
	}
}

// A name that a killed process had created, and not yet written to the journal, may have
// been read at version 1.
func TestVersionsOfAnEmptyJournalDoNotComeAgain(t *testing.T) {
	arguments := []string{"-journal", filepath.Join(t.TempDir(), "trail")}
	_, stop, _ := start(t, arguments...)
	require.NoError(t, stop())
	client, stop, _ := start(t, arguments...)
	action, err := client.CreateAction(t.Context(), api.Action{Name: "a"})
	require.NoError(t, err)
	assert.Greater(t, action.Version, uint64(1<<31))
	require.NoError(t, stop())
}
