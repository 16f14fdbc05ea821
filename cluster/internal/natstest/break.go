package natstest

import (
	"fmt"
	"time"
)

// Kill ends server i, with its connections. It must be running. Kill returns when the
// clients have noticed: a bare request that one sends before is lost, and waits for ever.
func (c *Cluster) Kill(i int) {
	c.t.Helper()
	c.kill(i)
	c.wait(fmt.Sprint("client has left server ", i), func() bool {
		for _, nc := range c.conns {
			if nc.IsConnected() && nc.ConnectedServerName() == c.nodes[i].name {
				return false
			}
		}
		return true
	})
}

func (c *Cluster) kill(i int) {
	if s := c.nodes[i].running.Swap(nil); s != nil {
		s.Shutdown()
		s.WaitForShutdown()
	}
}

// Restart starts server i, which was killed, with the files that it has left.
func (c *Cluster) Restart(i int) { c.launch(i) }

// RestartAll kills all servers that run, starts all, and waits until they have a leader.
func (c *Cluster) RestartAll() {
	for i := range c.nodes {
		c.Kill(i)
	}
	for i := range c.nodes {
		c.launch(i)
	}
	c.WaitReady()
}

// Partition stalls all traffic between server i and the others, in both directions, and
// with clients, that to its own clients. Connections stay open.
func (c *Cluster) Partition(i int, clients bool) { c.stall(i, clients, true) }

// Heal lets all traffic of server i pass again, with what was held back.
func (c *Cluster) Heal(i int) { c.stall(i, true, false) }

func (c *Cluster) stall(i int, clients, stalled bool) {
	c.links(i, func(p *proxy) { p.stall(stalled) })
	if clients {
		c.nodes[i].clients.stall(stalled)
	}
}

// CutClients stalls the traffic between server i and its clients, or lets it pass again.
func (c *Cluster) CutClients(i int, cut bool) { c.nodes[i].clients.stall(cut) }

// Slow delays what server i and the others send each other by so much for each 64 KiB or
// part of it. It stands for a server whose disk or network is slow. 0 ends it.
func (c *Cluster) Slow(i int, delay time.Duration) {
	c.links(i, func(p *proxy) { p.slow(delay) })
}

// SlowClients delays what server i and its clients send each other, as Slow does.
func (c *Cluster) SlowClients(i int, delay time.Duration) { c.nodes[i].clients.slow(delay) }

// ResetClients closes the connections of server i with its clients, which may come back.
func (c *Cluster) ResetClients(i int) { c.nodes[i].clients.reset() }

// links calls f for all proxies between server i and the other servers.
func (c *Cluster) links(i int, f func(*proxy)) {
	for from, p := range c.nodes[i].routes {
		f(p)
		f(c.nodes[from].routes[i])
	}
}

// StreamLeader waits until a stream of the default account has a leader among the servers
// that run, and returns its number.
func (c *Cluster) StreamLeader(stream string) int {
	c.t.Helper()
	leader := -1
	c.wait("leader of stream "+stream, func() bool {
		for i, n := range c.nodes {
			if s := n.running.Load(); s != nil && s.JetStreamIsStreamLeader("$G", stream) {
				leader = i
				return true
			}
		}
		return false
	})
	return leader
}
