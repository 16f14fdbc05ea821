package shardedregistry

// seal makes all operations that are about to create a key wait. When it returns, some
// that have not seen it may still be in callbacks of the table. The caller holds sealing.
func (rt *root[K]) seal() {
	for i := range rt.shards {
		rt.installShard(rt.hashIn(i)).floor.Or(uint64(sealedBit))
	}
}

// unseal takes back seal, and then the caller unlocks sealing.
func (rt *root[K]) unseal() {
	for i := range rt.shards {
		rt.shard(rt.hashIn(i)).floor.And(^uint64(sealedBit))
	}
}

// hashIn returns a hash of a key in shard i.
func (rt *root[K]) hashIn(i int) uint64 { return uint64(i) << (rt.shift & 63) << 1 }

// sealed reports whether the shard of a key is sealed.
func (rt *root[K]) sealed(hash uint64) bool {
	s := rt.shardAt(hash).Load()
	return s != nil && Version(s.floor.Load())&sealedBit != 0
}

// awaitUnsealed returns when a call that has sealed the registry has unsealed it.
func (rt *root[K]) awaitUnsealed() {
	rt.sealing.Lock()
	//lint:ignore SA2001 whoever holds it unseals the registry first
	rt.sealing.Unlock()
}
