// Package nodetest starts the engine of a cluster for the tests of a package.
package nodetest

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/latchfree/latchfree/examples/planservice/internal/node"
)

// Cluster is some servers, and what a client of each has.
type Cluster struct {
	Nodes   []*node.Node
	Clients []jetstream.JetStream
	dir     string
}

// Start starts so many servers.
func Start(n int) (c *Cluster, err error) {
	c = new(Cluster)
	defer func() {
		if err != nil {
			c.Close()
		}
	}()
	if c.dir, err = os.MkdirTemp("", "nodetest"); err != nil {
		return nil, err
	}
	peers, err := node.FreeAddresses("127.0.0.1", n)
	if err != nil {
		return nil, err
	}
	for i := range peers {
		s, err := node.Start(node.Config{Replica: i, Peers: peers, Secret: "secret", NoSync: true,
			Folder: filepath.Join(c.dir, fmt.Sprint(i)), Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			return nil, err
		}
		c.Nodes = append(c.Nodes, s)
		js, err := jetstream.New(s.Conn)
		if err != nil {
			return nil, err
		}
		c.Clients = append(c.Clients, js)
	}
	return c, nil
}

// Close ends the servers.
func (c *Cluster) Close() error {
	var err error
	for _, n := range c.Nodes {
		err = errors.Join(err, n.Close())
	}
	return errors.Join(err, os.RemoveAll(c.dir))
}
