//go:build modelcheck

package interleavings

import "testing"

// The seeds reach every operation in a thread, and every kind of result.

func TestSliceInterleavingsSeeds(t *testing.T) {
	seedsReach(t, "FuzzSliceInterleavings", sliceProgram(newSlice),
		"Append", "Load", "Len", "All", "Snapshot", "CompareAndSwap = true", "CompareAndSwap = false",
		"Update that appends = done", "Update that replaces = done", "Update that returns its argument = done",
		"Update that drops the first = done", "Update that panics = panics: injected", "Update that exits = exits",
		"Set = done", "Set = panics: cowchangeset: Slice.Set called with index 1 of 1 items",
		"Delete = done", "Delete = panics: cowchangeset: Slice.Delete called with index 0 of 0 items")
}

func TestRegistryInterleavingsSeeds(t *testing.T) {
	seedsReach(t, "FuzzRegistryInterleavings", registryProgram(newRegistry),
		"Create = 1", "Create = 3", "Create = shardedregistry: key exists: given BACKUP, stored backup, version 1",
		"Get = 0 false", "Get = 9 true", "Lookup = { 0 0} false", "Lookup = {backup 9 1} true", "Put = 1", "Put = 2",
		"Update = {backup 109 2}", "Update = injected", "Update = panics: injected", "Update = exits", "Update = shardedregistry: key not found",
		"createOrUpdate = {backup 109 2}", "createOrUpdate = {backup -9 1}", "createOrUpdate = injected", "createOrUpdate = panics: injected",
		"createOrUpdate = exits",
		"UpdateIf = 2", "UpdateIf = shardedregistry: version conflict: have 2, want 1", "UpdateIf = shardedregistry: key not found",
		"Delete = { 0 0} false", "Delete = {backup 1 1} true",
		"DeleteIf = 0", "DeleteIf = shardedregistry: version conflict: have 3, want 1", "DeleteIf = shardedregistry: key not found",
		"DeleteFunc = 0 false", "DeleteFunc = 1 true",
		"Compute = { 0 0} false", "Compute = {backup 9 1} true", "Compute = {backup 17 3} true",
		"Entries = { 0 0} false", "Entries = {backup 1 1} true", "Entries = {drain 2 1} true", "Len",
		"Snapshot = {backup 1 1} true {drain 2 1} true 2 2", "Snapshot = {backup 9 2} true {drain 2 1} true 2 2")
}

func TestChangesetInterleavingsSeeds(t *testing.T) {
	seedsReach(t, "FuzzChangesetInterleavings", changesetProgram(newTracker),
		"Record = 1", "Record = 2", "Record = sealed", "Record = none yet",
		"RecordBatch = 0", "RecordBatch = 1", "RecordBatch = 2", "RecordBatch = sealed",
		"Changeset.Record = 1", "Changeset.Record = sealed",
		"Start = 1", "Start = 2", "Start = injected",
		"StartAfter = 1", "StartAfter = 2", "StartAfter = cowchangeset: not the latest changeset",
		"Seal = []", "Seal = [9]", "Seal = injected", "Sealed = true", "Sealed = false",
		"Current = none yet", "Current = 1 open: true", "Current = 1 open: false", "Current = 2 open: true",
		"Entries = []", "Entries = [9]", "IDs = [id-1]", "IDs = [id-1 id-2]", "Trail = map[1:[2 9]]",
		"Apply = runs [2]", "Apply = is being applied", "Apply = has been applied", "Apply = has been aborted",
		"Apply is done", "Apply ends = true", "Apply ends = false", "Applied = false", "Applied = true",
		"Abort = ", "Abort = injected", "Abort = is being applied", "Abort = has been applied", "Reason = false", "Reason = true",
		"Follow = [] all: false", "Follow = [2] all: true", "Prune = 0", "Prune = 1", "Prune = 2", "IDs = [id-2]")
}

func TestCacheInterleavingsSeeds(t *testing.T) {
	seedsReach(t, "FuzzCacheInterleavings", cacheProgram(newCache),
		"creates = true", "creates = false", "ends",
		"GetOrCreate by a value = 9", "GetOrCreate by a value = 17", "GetOrCreate by an error = injected",
		"GetOrCreate by a panic = panics: injected", "GetOrCreate by Goexit = exits",
		"GetOrCreate = 9", "GetOrCreate = injected", "GetOrCreate = PanicError: injected",
		"GetOrCreate = oncecache: create function called runtime.Goexit", "GetOrCreate = oncecache: cache is closed",
		"GetOrCreateContext by a value = 9", "GetOrCreateContext by an error = injected", "GetOrCreateContext by a value = context canceled",
		"GetOrCreateContext by a panic = panics: PanicError: injected", "GetOrCreateContext = context canceled",
		"Acquire by a value = 9", "Acquire = 9", "Acquire = 17", "Acquire by an error = injected", "Acquire = injected",
		"Acquire with a context by a value = 9", "Acquire with a context by a value = context canceled",
		"Release = 0", "Discard = 0", "Cancel", "Close",
		"Get = {0 false}", "Get = {9 true}", "Set = {0 false}", "Set = {9 true}", "SetIfAbsent = {17 true}", "SetIfAbsent = {9 false}", "SetIfAbsent = {0 false}",
		"Delete = {0 false}", "Delete = {9 true}", "CompareAndDelete = true", "CompareAndDelete = false",
		"All = {0 false}", "All = {1 true}", "Len",
		"Wait = 9", "Wait = injected", "Wait = PanicError: injected", "Wait = oncecache: no such key", "Wait = oncecache: cache is closed",
		"Wait = context canceled", "Wait = oncecache: create function called runtime.Goexit",
		"Refresh by a value = 9", "Refresh by a value = 17", "Refresh by an error = injected", "Refresh by a panic = panics: injected",
		"Refresh by Goexit = exits", "Refresh by a value = oncecache: cache is closed", "Refresh = 9", "Refresh = injected",
		"GetOrCreateMany by a value = 9", "GetOrCreateMany by a value = 39", "GetOrCreateMany by a panic = panics: injected",
		"GetOrCreateMany by Goexit = exits", "GetOrCreateMany = 9", "GetOrCreateMany = 17", "GetOrCreateMany by a value = an error")
}

func TestBreakerInterleavingsSeeds(t *testing.T) {
	const open, busy = "atomicbreaker: call rejected: breaker is open",
		"atomicbreaker: call rejected: breaker is half-open and all probes are in flight"
	seedsReach(t, "FuzzBreakerInterleavings", breakerProgram(newBreakers),
		"Allow = admitted", "Allow = "+open, "Allow = "+busy, "Do = admitted", "Do = "+open, "Do = "+busy,
		"Do = <nil>", "Do = injected", "Do = atomicbreaker: call rejected: throttled: backend overloaded", "Do = panics: injected", "Do = exits",
		"Permit.Success = Counted", "Permit.Success = Recovered", "Permit.Success = Late",
		"Permit.Failure = Counted", "Permit.Failure = Tripped", "Permit.Failure = Late",
		"Permit.Ignored = Counted", "Permit.Ignored = Late",
		"RecordSuccess = Counted", "RecordSuccess = Recovered",
		"RecordFailure = Counted", "RecordFailure = Tripped", "RecordFailure = Late",
		"Permit.Trip = Counted", "Permit.Trip = Tripped", "Permit.Trip = Late", "RecordSuccess = Late",
		"Trip", "ForceOpen", "Disable", "Update = <nil>",
		"State = Closed", "State = Open", "State = HalfOpen", "State = ForcedOpen", "State = Disabled", "State = Shadow", "IsOpen = true", "IsOpen = false",
		"Snapshot", "Reset", "Sweep", "Tick")
}
