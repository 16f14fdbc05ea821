package node

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

// No two of the addresses have one port, nor have they that of another address.
func TestFreeAddresses(t *testing.T) {
	const n = 200
	services, err := FreeAddresses("127.0.0.1", n)
	require.NoError(t, err)
	peers, err := FreeAddresses("127.0.0.1", n, services...)
	require.NoError(t, err)
	ports := make(map[string]bool)
	for _, address := range append(services, peers...) {
		_, port, err := net.SplitHostPort(address)
		require.NoError(t, err)
		require.False(t, ports[port], port)
		ports[port] = true
	}
	_, err = FreeAddresses("192.0.2.1", 1) // which is nobody's
	require.ErrorContains(t, err, "no 1 free ports at 192.0.2.1: ")
}
