package shardedregistry

import "unsafe"

// TransactionSize returns the size of a transaction of two keys.
func TransactionSize() uintptr { return unsafe.Sizeof(Tx[string, int]{}) }
