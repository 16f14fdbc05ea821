package natstest

import (
	"fmt"
	"time"
)

// StepDown makes the leader of a stream of the default account hand over to any other
// server.
func (c *Cluster) StepDown(stream string) { c.stepDown(stream, nil) }

// Lead makes server i the leader of a stream of the default account.
func (c *Cluster) Lead(stream string, i int) {
	c.t.Helper()
	request := fmt.Appendf(nil, `{"placement":{"preferred":%q}}`, c.nodes[i].name)
	for c.StreamLeader(stream) != i {
		c.stepDown(stream, request)
		for end := time.Now().Add(time.Second); c.StreamLeader(stream) != i && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
	}
}

func (c *Cluster) stepDown(stream string, request []byte) {
	c.t.Helper()
	nc := c.Connect()
	defer nc.Close()
	if _, err := nc.Request("$JS.API.STREAM.LEADER.STEPDOWN."+stream, request, patience); err != nil {
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
