package node

import (
	"math/rand/v2"
	"net"
	"strconv"
)

// FreeAddress returns an address whose port is free, and below those that systems give to
// connections: so it is free still when a replica comes back.
func FreeAddress(host string) (string, error) {
	const lowest, ports = 10_000, 20_000
	var last error
	for range 100 {
		address := net.JoinHostPort(host, strconv.Itoa(lowest+rand.IntN(ports)))
		l, err := net.Listen("tcp", address)
		if err == nil {
			return address, l.Close()
		}
		last = err
	}
	return "", last
}
