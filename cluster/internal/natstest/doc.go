// Package natstest runs a cluster of NATS servers with JetStream in a test, and breaks it.
//
// All traffic between the servers, and between a server and its clients, goes through
// proxies on loopback addresses. A test can stall that traffic, which is what a partition
// looks like to TCP, or delay it. A killed server keeps its files and comes back with them.
//
// The servers run in the test's process, so Kill ends a server without a farewell to its
// clients and followers, but it cannot lose what the operating system has not yet written.
package natstest
