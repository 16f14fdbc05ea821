package natstest

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// patience is how long the harness waits for the cluster, in all functions that wait.
const patience = 40 * time.Second

// Cluster is some servers that form one NATS cluster. Its methods belong to the goroutine
// of the test, or to one that the test waits for. Servers have numbers from 0.
type Cluster struct {
	t     testing.TB
	nodes []*node
	conns []*nats.Conn // of clients
	adapt func(*server.Options)
}

// node is one server, which is killed and started again, and its proxies.
type node struct {
	name    string
	dir     string
	running atomic.Pointer[server.Server]
	clients *proxy         // from clients
	routes  map[int]*proxy // from the server with that number
}

// Start runs n servers until the test ends, and returns when they have a leader. If n is
// 1, the server runs alone, without the parts of a cluster. Adapt may change the options
// of each server before it starts.
func Start(t testing.TB, n int, adapt ...func(*server.Options)) *Cluster {
	t.Helper()
	c := &Cluster{t: t, adapt: func(o *server.Options) {
		for _, f := range adapt {
			f(o)
		}
	}}
	dir := t.TempDir() // which goes
	t.Cleanup(c.stop)  // after the servers
	for i := range n {
		c.nodes = append(c.nodes, &node{name: fmt.Sprintf("n%d", i), dir: filepath.Join(dir, fmt.Sprint(i))})
	}
	for i, to := range c.nodes {
		to.clients = c.proxy(to.clientAddr)
		to.routes = make(map[int]*proxy)
		for from := range c.nodes {
			if from != i {
				to.routes[from] = c.proxy(to.routeAddr)
			}
		}
	}
	for i := range c.nodes {
		c.launch(i)
	}
	c.WaitReady()
	return c
}

func (c *Cluster) proxy(target func() string) *proxy {
	p, err := newProxy(target)
	if err != nil {
		c.t.Fatal(err)
	}
	return p
}

func (n *node) clientAddr() string {
	if s := n.running.Load(); s != nil {
		if a := s.Addr(); a != nil {
			return a.String()
		}
	}
	return ""
}

func (n *node) routeAddr() string {
	if s := n.running.Load(); s != nil {
		if a := s.ClusterAddr(); a != nil {
			return a.String()
		}
	}
	return ""
}

// launch starts server i with the files that it has.
func (c *Cluster) launch(i int) {
	n := c.nodes[i]
	o := &server.Options{
		ServerName: n.name, Host: "127.0.0.1", Port: server.RANDOM_PORT,
		ClientAdvertise: n.clients.addr(),
		JetStream:       true, StoreDir: n.dir,
		NoSigs: true, NoLog: true, NoSystemAccount: false,
	}
	if len(c.nodes) > 1 {
		// The servers tell each other an address where nobody listens, so that they
		// connect through their proxies only.
		o.Cluster = server.ClusterOpts{
			Name: "test", Host: "127.0.0.1", Port: server.RANDOM_PORT,
			Advertise: "127.0.0.1:1", PoolSize: -1, ConnectRetries: 1 << 30,
		}
		for j, to := range c.nodes {
			if j != i {
				o.Routes = append(o.Routes, &url.URL{Scheme: "nats-route", Host: to.routes[i].addr()})
			}
		}
	}
	c.adapt(o)
	s, err := server.NewServer(o)
	if err != nil {
		c.t.Fatal(err)
	}
	n.running.Store(s)
	s.Start()
	if !s.ReadyForConnections(patience) {
		c.t.Fatalf("natstest: server %d does not accept connections", i)
	}
}

// stop ends all servers, and then the proxies.
func (c *Cluster) stop() {
	for i := range c.nodes {
		c.kill(i)
	}
	for _, n := range c.nodes {
		if n.clients != nil {
			n.clients.close()
		}
		for _, p := range n.routes {
			p.close()
		}
	}
}

// URL returns the addresses of all servers, as nats.Connect takes them.
func (c *Cluster) URL() string {
	var urls []string
	for i := range c.nodes {
		urls = append(urls, c.URLOf(i))
	}
	return strings.Join(urls, ",")
}

// URLOf returns the address of server i.
func (c *Cluster) URLOf(i int) string { return "nats://" + c.nodes[i].clients.addr() }

// Connect connects to the cluster until the test ends. The connection never gives up, and
// notices within a second or two that a server is silent.
func (c *Cluster) Connect(options ...nats.Option) *nats.Conn { return c.connect(c.URL(), options) }

// ConnectTo connects to server i and to no other.
func (c *Cluster) ConnectTo(i int, options ...nats.Option) *nats.Conn {
	return c.connect(c.URLOf(i), append([]nats.Option{nats.IgnoreDiscoveredServers()}, options...))
}

func (c *Cluster) connect(urls string, options []nats.Option) *nats.Conn {
	c.t.Helper()
	nc, err := nats.Connect(urls, append([]nats.Option{
		nats.MaxReconnects(-1), nats.ReconnectWait(50 * time.Millisecond), nats.ReconnectJitter(50*time.Millisecond, 0),
		nats.PingInterval(500 * time.Millisecond), nats.MaxPingsOutstanding(2), nats.Timeout(2 * time.Second),
		nats.RetryOnFailedConnect(true),
	}, options...)...)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(nc.Close)
	c.conns = append(c.conns, nc)
	return nc
}

// JetStream connects as Connect does, and returns the JetStream of the connection.
func (c *Cluster) JetStream(options ...nats.Option) jetstream.JetStream {
	c.t.Helper()
	js, err := jetstream.New(c.Connect(options...))
	if err != nil {
		c.t.Fatal(err)
	}
	return js
}

// WaitReady waits until the servers that run have a leader who knows them all.
func (c *Cluster) WaitReady() {
	c.t.Helper()
	c.wait("a leader of the cluster", func() bool {
		if len(c.nodes) == 1 {
			return c.nodes[0].running.Load().JetStreamEnabled()
		}
		led := false
		for _, n := range c.nodes {
			s := n.running.Load()
			if s == nil {
				continue
			}
			if !s.JetStreamIsCurrent() {
				return false
			}
			if s.JetStreamIsLeader() {
				led = len(s.JetStreamClusterPeers()) == len(c.nodes)
			}
		}
		return led
	})
}

// wait waits until holds.
func (c *Cluster) wait(what string, holds func() bool) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for !holds() {
		if ctx.Err() != nil {
			c.t.Fatalf("natstest: no %s after %v", what, patience)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// Len returns the number of servers, running or not.
func (c *Cluster) Len() int { return len(c.nodes) }
