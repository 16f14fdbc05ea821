//go:build modelcheck

package shardedregistry

// What limits.go sets for speed is set here so that few operations get far: a
// call suspects itself at its first failure. Nothing else differs from the code
// that ships.
const (
	patience = 1
	proofs   = 2
)
