package node

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// FreeAddresses returns n addresses with different ports that are free, none of which is that of
// another one given. They are below those that systems give to connections: so they are free
// still when a replica comes back.
func FreeAddresses(host string, n int, others ...string) ([]string, error) {
	const lowest, ports, tries = 10_000, 20_000, 100
	taken := make(map[string]bool)
	for _, other := range others {
		if _, port, err := net.SplitHostPort(other); err == nil {
			taken[port] = true
		}
	}
	var found []string
	var last error
	for range n * tries {
		if len(found) == n {
			break
		}
		port := strconv.Itoa(lowest + rand.IntN(ports))
		if taken[port] {
			continue
		}
		address := net.JoinHostPort(host, port)
		l, err := net.Listen("tcp", address)
		if err == nil {
			err = l.Close()
		}
		if err != nil {
			last = err
			continue
		}
		taken[port] = true
		found = append(found, address)
	}
	if len(found) < n {
		return nil, fmt.Errorf("no %d free ports at %s: %w", n, host, last)
	}
	return found, nil
}
