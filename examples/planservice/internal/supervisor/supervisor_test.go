package supervisor

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The environment of a child.
const (
	roleVariable   = "SUPERVISOR_ROLE"
	folderVariable = "SUPERVISOR_FOLDER"
)

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		os.Exit(behave(role, os.Getenv(folderVariable)))
	}
	os.Exit(m.Run())
}

// behave is what a child does.
func behave(role, folder string) int {
	mark := func(name string) { os.WriteFile(filepath.Join(folder, name), nil, 0o600) }
	terminated := make(chan os.Signal, 1)
	signal.Notify(terminated, syscall.SIGTERM)
	ended := make(chan struct{})
	go func() { io.Copy(io.Discard, os.Stdin); close(ended) }()
	switch role {
	case "broken":
		return 7
	case "stubborn":
		fmt.Println(Listening)
		select {}
	}
	fmt.Println(Listening)
	select {
	case <-terminated:
	case <-ended: // the supervisor has gone
		mark(role + "-orphaned")
		return 0
	}
	if role == "slow" {
		time.Sleep(200 * time.Millisecond)
	}
	mark(role + "-drained")
	fmt.Println(Drained)
	<-ended
	if _, err := os.Stat(filepath.Join(folder, "slow-drained")); err == nil {
		mark(role + "-ended-last")
	}
	return 0
}

// settings returns a Config of children that have these roles.
func settings(t *testing.T, folder string, roles ...string) Config {
	return Config{Children: len(roles), Pause: time.Millisecond, Grace: 10 * time.Second, Log: slog.New(slog.DiscardHandler), Listening: func() {},
		Command: func(n int) *exec.Cmd {
			c := exec.Command(os.Args[0])
			c.Env = append(os.Environ(), roleVariable+"="+roles[n], folderVariable+"="+folder)
			c.Stderr = os.Stderr
			return c
		}}
}

// All children live until all have drained.
func TestEndTogether(t *testing.T) {
	folder := t.TempDir()
	c := settings(t, folder, "fast", "slow")
	ctx, cancel := context.WithCancel(t.Context())
	c.Listening = cancel
	require.NoError(t, Run(ctx, c))
	for _, name := range []string{"fast-drained", "slow-drained", "fast-ended-last", "slow-ended-last"} {
		assert.FileExists(t, filepath.Join(folder, name))
	}
}

// A child that is killed is started again, and the others stay.
func TestKilledChildComesBack(t *testing.T) {
	c := settings(t, t.TempDir(), "fast", "slow")
	read, write := io.Pipe()
	defer write.Close()
	c.Log = slog.New(slog.NewTextHandler(write, nil))
	pids := [2]chan int{make(chan int, 10), make(chan int, 10)}
	go func() {
		for lines := bufio.NewScanner(read); lines.Scan(); {
			var n, pid int
			_, line, _ := strings.Cut(lines.Text(), `msg="a replica is started" `)
			if _, err := fmt.Sscanf(line, "replica=%d pid=%d", &n, &pid); err == nil {
				pids[n] <- pid
			}
		}
	}()
	ctx, cancel := context.WithCancel(t.Context())
	listening := make(chan struct{})
	c.Listening = func() { close(listening) }
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, c) }()
	<-listening
	first := <-pids[0]
	for range 2 {
		require.NoError(t, syscall.Kill(<-pids[1], syscall.SIGKILL))
	}
	<-pids[1]
	assert.NoError(t, syscall.Kill(first, 0))
	cancel()
	require.NoError(t, <-ended)
	assert.Empty(t, pids[0])
}

// A child that never listens is an error, and ends the others.
func TestBrokenChild(t *testing.T) {
	folder := t.TempDir()
	c := settings(t, folder, "fast", "broken")
	err := Run(t.Context(), c)
	assert.ErrorContains(t, err, "replica 1 has ended before it listened: exit status 7")
}

// A child that does not end is killed.
func TestStubbornChild(t *testing.T) {
	c := settings(t, t.TempDir(), "stubborn", "fast")
	c.Grace = 50 * time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	c.Listening = cancel
	began := time.Now()
	require.NoError(t, Run(ctx, c))
	assert.GreaterOrEqual(t, time.Since(began), 2*c.Grace)
}

func TestNoProgram(t *testing.T) {
	c := settings(t, t.TempDir(), "fast", "fast")
	c.Command = func(int) *exec.Cmd { return exec.Command("/nonexistent") }
	assert.Error(t, Run(t.Context(), c))
}
