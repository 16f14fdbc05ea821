package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/latchfree/latchfree/examples/planservice/internal/node"
	"github.com/latchfree/latchfree/examples/planservice/internal/service"
	"github.com/latchfree/latchfree/examples/planservice/internal/supervisor"
)

const (
	replicas     = 3
	restartPause = time.Second
	// secretVariable is the environment variable by which a replica gets the secret. Others
	// can see arguments.
	secretVariable = "PLANSERVICE_SECRET"
)

// runCluster runs replicas as child processes, with the arguments of this one.
func runCluster(ctx context.Context, o options, arguments []string, output io.Writer) error {
	log := slog.New(slog.NewTextHandler(output, nil))
	if o.data == "" {
		folder, err := os.MkdirTemp("", "planservice")
		if err != nil {
			return err
		}
		defer os.RemoveAll(folder)
		o.data = folder
	}
	addresses, err := serviceAddresses(o.address)
	if err != nil {
		return err
	}
	peers, err := node.FreeAddresses("127.0.0.1", replicas, addresses...)
	if err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	secret := secretVariable + "=" + rand.Text()
	database := strings.TrimPrefix(o.service.Database, "file:")
	if database == "" {
		database = filepath.Join(o.data, "plans.db")
	}
	return supervisor.Run(ctx, supervisor.Config{
		Children: replicas, Pause: restartPause, Grace: o.grace + 5*time.Second, Log: log,
		Command: func(n int) *exec.Cmd {
			c := exec.Command(program, slices.Concat(arguments, []string{"-cluster=false", "-replica", strconv.Itoa(n), "-peers", strings.Join(peers, ","),
				"-addr", addresses[n], "-data", filepath.Join(o.data, strconv.Itoa(n)), "-db", database})...)
			c.Env = append(os.Environ(), secret)
			c.Stderr = output
			return c
		},
		Listening: func() {
			log.Info("the cluster serves", "urls", "http://"+strings.Join(addresses, " http://"), "data", o.data)
		},
	})
}

// serviceAddresses returns the addresses of the replicas: the ports from that of address on,
// or free ones if it is 0. They stay the same when a replica comes back.
func serviceAddresses(address string) ([]string, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	first, err := strconv.Atoi(port)
	if err != nil {
		return nil, fmt.Errorf("address %s: %w", address, err)
	}
	if first == 0 {
		return node.FreeAddresses(host, replicas)
	}
	all := make([]string, replicas)
	for i := range all {
		all[i] = net.JoinHostPort(host, strconv.Itoa(first+i))
	}
	return all, nil
}

// parent is the supervisor of this process, if it is a replica.
type parent struct {
	gone    chan struct{} // closed when the supervisor lets the replica end, or has ended
	say     io.Writer
	serving atomic.Bool // whether the replica has said that it listens
}

func newParent() *parent {
	p := &parent{gone: make(chan struct{}), say: os.Stdout}
	go func() {
		io.Copy(io.Discard, os.Stdin)
		close(p.gone)
	}()
	return p
}

// join completes the settings of a replica.
func (p *parent) join(o *options) {
	c := &o.service
	c.Store, c.Journal = "clustered", filepath.Join(o.data, "trail")
	c.Cluster = &service.Cluster{Replica: o.replica, Peers: strings.Split(o.peers, ","), Secret: os.Getenv(secretVariable),
		Folder: filepath.Join(o.data, "engine"), Leave: p.leave}
}

// listening says that this replica listens.
func (p *parent) listening() {
	p.serving.Store(true)
	fmt.Fprintln(p.say, supervisor.Listening)
}

// leave says that this replica has finished what it had begun, and waits for the others. One
// that could not begin waits for nobody.
func (p *parent) leave(ctx context.Context) {
	if !p.serving.Load() {
		return
	}
	fmt.Fprintln(p.say, supervisor.Drained)
	select {
	case <-p.gone:
	case <-ctx.Done():
	}
}
