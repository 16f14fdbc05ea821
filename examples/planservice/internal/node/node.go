// Package node runs a NATS server with JetStream in this process, as one of a cluster.
package node

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// Config holds the settings of a server.
type Config struct {
	Replica int      // its number
	Peers   []string // HOST:PORT at which each server, this one too, listens for the others
	Secret  string   // that the servers show each other
	Folder  string   // of its files
	NoSync  bool     // acknowledge what the disk may not have yet
	Log     *slog.Logger
}

// maxPayload is above what a request to the service may have.
const maxPayload = 4 << 20

// user is the name of the other servers, and of this process.
const user = "planservice"

// Node is a server that runs, and a connection to it.
type Node struct {
	server *server.Server
	*nats.Conn
}

// Start starts the server and connects to it. It does not wait for the others.
func Start(c Config) (*Node, error) {
	host, port, err := net.SplitHostPort(c.Peers[c.Replica])
	if err != nil {
		return nil, fmt.Errorf("node: %w", err)
	}
	o := &server.Options{
		ServerName: fmt.Sprint("replica-", c.Replica), NoSigs: true,
		// Nobody connects to that port. With DontListen the server does not listen for the
		// others either.
		Host: host, Port: server.RANDOM_PORT, Username: user, Password: c.Secret,
		JetStream: true, StoreDir: c.Folder, SyncAlways: !c.NoSync, MaxPayload: maxPayload,
		Cluster: server.ClusterOpts{Name: "planservice", Host: host, Username: user, Password: c.Secret, ConnectRetries: 1 << 30},
	}
	if o.Cluster.Port, err = strconv.Atoi(port); err != nil {
		return nil, fmt.Errorf("node: %w", err)
	}
	for i, peer := range c.Peers {
		if i != c.Replica {
			o.Routes = append(o.Routes, &url.URL{Scheme: "nats-route", Host: peer, User: url.UserPassword(user, c.Secret)})
		}
	}
	s, err := server.NewServer(o)
	if err != nil {
		return nil, fmt.Errorf("node: %w", err)
	}
	s.SetLoggerV2(logger{c.Log}, false, false, false)
	n := &Node{server: s}
	s.Start()
	if !s.ReadyForConnections(10 * time.Second) {
		return nil, errors.Join(fmt.Errorf("node: the server cannot listen at %s", c.Peers[c.Replica]), n.Close())
	}
	n.Conn, err = nats.Connect("", nats.InProcessServer(s), nats.UserInfo(user, c.Secret), nats.MaxReconnects(-1), nats.ReconnectWait(100*time.Millisecond))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("node: %w", err), n.Close())
	}
	return n, nil
}

// Close ends the connection and the server.
func (n *Node) Close() error {
	if n.Conn != nil {
		n.Conn.Close()
	}
	n.server.Shutdown()
	n.server.WaitForShutdown()
	return nil
}

// logger writes errors of the server, but not that others are away: those who wait for them
// say so. Warnings are for debugging.
type logger struct{ log *slog.Logger }

func (l logger) Noticef(string, ...any)        {}
func (l logger) Debugf(string, ...any)         {}
func (l logger) Tracef(string, ...any)         {}
func (l logger) Warnf(format string, v ...any) { l.log.Debug("engine: " + fmt.Sprintf(format, v...)) }
func (l logger) Errorf(format string, v ...any) {
	if !strings.HasPrefix(format, "Error trying to connect to route") {
		l.log.Warn("engine: " + fmt.Sprintf(format, v...))
	}
}
func (l logger) Fatalf(format string, v ...any) { l.log.Error("engine: " + fmt.Sprintf(format, v...)) }
