package natstest

import (
	"encoding/json"
	"time"

	"github.com/nats-io/nats.go"
)

// StepDown makes the leader of a stream of the default account hand over to any other
// server.
func (c *Cluster) StepDown(stream string) { c.stepDown(stream, nil) }

// Lead makes server i the leader of a stream of the default account.
func (c *Cluster) Lead(stream string, i int) {
	c.t.Helper()
	nc := c.Connect()
	defer nc.Close()
	for c.StreamLeader(stream) != i {
		c.request(nc, stream, map[string]any{"placement": map[string]any{"preferred": c.nodes[i].name}})
		for end := time.Now().Add(time.Second); c.StreamLeader(stream) != i && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
	}
}

func (c *Cluster) stepDown(stream string, request any) {
	c.t.Helper()
	nc := c.Connect()
	defer nc.Close()
	c.request(nc, stream, request)
}

func (c *Cluster) request(nc *nats.Conn, stream string, request any) {
	c.t.Helper()
	var body []byte
	if request != nil {
		body, _ = json.Marshal(request)
	}
	if _, err := nc.Request("$JS.API.STREAM.LEADER.STEPDOWN."+stream, body, patience); err != nil {
		c.t.Fatal(err)
	}
}

// ConsumerServer returns the number of the server that leads a consumer of a stream of the default
// account, or -1 if none does, as when the consumer is gone.
func (c *Cluster) ConsumerServer(stream, consumer string) int {
	for i, n := range c.nodes {
		if s := n.running.Load(); s != nil && s.JetStreamIsConsumerLeader("$G", stream, consumer) {
			return i
		}
	}
	return -1
}
