package natstest

import (
	"fmt"
	"strings"

	"github.com/nats-io/nats-server/v2/server"
)

// describe says what each server that runs knows of the streams of all accounts, and who
// leads them: for the log of a test that has failed, before anything is mended.
func (c *Cluster) describe() string {
	var b strings.Builder
	for i, n := range c.nodes {
		s := n.running.Load()
		if s == nil {
			fmt.Fprintf(&b, "\nserver %d is down", i)
			continue
		}
		fmt.Fprintf(&b, "\nserver %d: leads the cluster: %v, %d routes, %d clients", i, s.JetStreamIsLeader(), s.NumRoutes(), s.NumClients())
		info, err := s.Jsz(&server.JSzOptions{Accounts: true, Streams: true})
		if err != nil {
			fmt.Fprint(&b, ", ", err)
			continue
		}
		for _, account := range info.AccountDetails {
			for _, stream := range account.Streams {
				fmt.Fprintf(&b, "\n  %s ends at %d", stream.Name, stream.State.LastSeq)
				if stream.Cluster == nil {
					continue
				}
				fmt.Fprintf(&b, ", leader %q since %v", stream.Cluster.Leader, stream.Cluster.LeaderSince)
				for _, r := range stream.Cluster.Replicas {
					fmt.Fprintf(&b, "; %s current: %v, heard of %v ago, behind by %d", r.Name, r.Current, r.Active, r.Lag)
				}
			}
		}
	}
	return b.String()
}
