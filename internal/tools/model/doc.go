// Package model documents the sequential models below it, one of each type: what the
// type should do for one goroutine, in maps and slices, without anything of how it is
// implemented. Only tests import them. Each package has a folder of its own, so that
// tests of one do not depend on the others.
//
//	model          protocols (mc_*_test.go)   fuzzing (fuzz/)
//	Registry       shardedregistry            FuzzRegistryOps, FuzzRegistryIndexes, FuzzRegistryTransact, FuzzRegistryReplace, FuzzRegistryExpiry, FuzzRegistryInterleavings
//	Tracker        cowchangeset               FuzzChangesetOps, FuzzChangesetInterleavings
//	Slice          cowchangeset               FuzzSliceOps, FuzzSliceInterleavings
//	Cache          oncecache                  FuzzCacheInterleavings and, within Owner, FuzzCacheOps, FuzzCacheWeights, FuzzCacheExpiry
//	Breaker        atomicbreaker              FuzzBreakerOps, FuzzBreakerInterleavings
//	Budget         retrybudget                FuzzRetryBudgetOps
//	Throttle       none                       FuzzThrottleOps
//
// A protocol gives the operations of its package the names that its threads use,
// keeps what each thread has got, such as permits, and leaves the rest to the model.
// The tests beside the internals of atomicbreaker cannot import a model that imports
// atomicbreaker; mc_scenes_test.go there hands it to them.
//
// These are stated elsewhere:
//
//   - Histories (fuzz/histories) have models whose states are values, because
//     porcupine compares and keeps them.
//   - FuzzRegistryWatchOps knows every version that a key has had, because a loop may
//     show any of them.
//   - The protocols of internal/table compare with a map, which nothing else does.
//   - Protocols about leases, bounds and waiting in oncecache, and about stores in
//     cowchangeset, have no sequential order to compare with. They check invariants.
//   - A Throttle rejects by chance, so its protocols compare counts.
package model
