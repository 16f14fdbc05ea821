package main

// testCase is one row of the table. What it does and why is the comment of its
// function, which the legend shows.
type testCase struct {
	name  string // of the function, and on the command line
	title string
	needs []feature // a cache that lacks one is not asked
	run   func(*trial)
}

// group is the cases of one file.
type group struct {
	title string
	file  string
	cases []*testCase
}

// groups lists the rows.
var groups = []group{
	{"One value per key", "case_once.go", []*testCase{
		{"once", "1,000 callers, one creation", nil, once},
		{"publication", "a caller who arrives at publication", nil, publication},
		{"setInFlight", "`Set` during a creation: one instance", nil, setInFlight},
		{"successor", "a forgotten creation ends: its successor stays", []feature{deletes}, successor},
		{"pairsThatPrintAlike", "struct keys that print alike", []feature{pairKeys}, pairsThatPrintAlike},
		{"nilPointer", "a nil pointer is a value", nil, nilPointer},
		{"nilInterface", "a nil interface is a value", nil, nilInterface},
		{"peekInFlight", "a look without creating", []feature{peeks}, peekInFlight},
		{"waitOnly", "waiting without creating", []feature{waiting}, waitOnly},
	}},
	{"Errors, panics, Goexit", "case_ends.go", []*testCase{
		{"sharedError", "an error: all who wait get it", []feature{failures}, sharedError},
		{"forgottenError", "an error is not kept", nil, forgottenError},
		{"staleError", "who got an error does not get it again", []feature{failures}, staleError},
		{"panicWaiters", "a panic: those who wait get to know", nil, panicWaiters},
		{"panicKey", "a panic: the key is usable afterwards", nil, panicKey},
		{"goexitWaiters", "Goexit: those who wait get to know", nil, goexitWaiters},
		{"goexitKey", "Goexit: the key is usable afterwards", nil, goexitKey},
		{"hookExits", "who is told of a creation calls Goexit: nothing stays in use", []feature{hooks, listener}, hookExits},
		{"keptError", "an error that is kept ends", []feature{keptErrors}, keptError},
		{"keptErrorSet", "`Set` overrides an error that is kept", []feature{keptErrors}, keptErrorSet},
		{"keptCancellation", "a cancellation is not kept as an error", []feature{keptErrors, contexts}, keptCancellation},
	}},
	{"Contexts", "case_contexts.go", []*testCase{
		{"creatorCancelled", "the creator is cancelled: others get a value", []feature{contexts}, creatorCancelled},
		{"creatorLeaves", "the creator can leave", []feature{contexts}, creatorLeaves},
		{"waiterLeaves", "a waiter can leave", []feature{contexts}, waiterLeaves},
		{"allLeft", "all have left: the work is cancelled", []feature{contexts, cancels}, allLeft},
		{"newcomer", "a newcomer gets no error of those who left", []feature{contexts}, newcomer},
		{"overlap", "cancelled and next creation do not overlap", []feature{contexts}, overlap},
		{"lateValue", "a value made for nobody is not lost", []feature{contexts}, lateValue},
	}},
	{"Locks", "case_locks.go", []*testCase{
		{"slowKey", "one slow creation delays no other key", nil, slowKey},
		{"slowHit", "one slow creation delays no hit", nil, slowHit},
		{"otherKey", "create asks for another key", nil, otherKey},
		{"callback", "a listener uses the cache", []feature{listener}, callback},
		{"loop", "a loop over the keys uses the cache", []feature{loops}, loop},
	}},
	{"Cycles", "case_cycles.go", []*testCase{
		{"ownKey", "create asks for its own key", nil, ownKey},
		{"cycle", "two creations ask for each other's key", nil, cycle},
		{"cycleOfCaches", "creations of two caches do", nil, cycleOfCaches},
		{"cycleWithoutContext", "two creations do, without their contexts", nil, cycleWithoutContext},
		{"diamond", "two parts of a value need the same one", nil, diamond},
		{"laterSelf", "create starts what asks for its key later", nil, laterSelf},
	}},
	{"Refresh", "case_refresh.go", []*testCase{
		{"refreshServes", "a refresh: the old value serves meanwhile", []feature{refreshes}, refreshServes},
		{"refreshShared", "three refreshers share one call", []feature{refreshes, askedRefreshes}, refreshShared},
		{"refreshFails", "a refresh fails: the old value stays", []feature{refreshes}, refreshFails},
		{"refreshPanics", "a refresh panics: the old value stays", []feature{refreshes}, refreshPanics},
		{"refreshExits", "a refresh calls Goexit: the old value stays", []feature{refreshes}, refreshExits},
		{"refreshDeleted", "`Delete` during a refresh is not undone", []feature{refreshes}, refreshDeleted},
		{"refreshSet", "`Set` during a refresh is not undone", []feature{refreshes}, refreshSet},
		{"refreshTold", "a refresh: the old value is closed once", []feature{refreshes, listener}, refreshTold},
		{"refreshOrphan", "`Delete` during a refresh: nothing is orphaned", []feature{refreshes, listener}, refreshOrphan},
		{"refreshExpired", "an expiry during a refresh: one creation at a time", []feature{refreshes, expiry}, refreshExpired},
		{"refreshSame", "a refresh returns the old value: it is not closed", []feature{refreshes, listener}, refreshSame},
		{"renewalServes", "fresh for a time, usable for longer", []feature{renewals}, renewalServes},
		{"renewalHangs", "a renewal hangs until its context ends", []feature{renewals}, renewalHangs},
		{"reloadRight", "a refresh finds that the old value is right", []feature{reloads}, reloadRight},
	}},
	{"Batches", "case_batches.go", []*testCase{
		{"batchOverlap", "batches that overlap: each key once", []feature{batches}, batchOverlap},
		{"batchOpposite", "batches in opposite order: each key once, no deadlock", []feature{batches}, batchOpposite},
		{"batchAndSingle", "a batch and single callers: each key once", []feature{batches}, batchAndSingle},
		{"batchFails", "a batch fails: its keys are usable", []feature{batches}, batchFails},
		{"batchPanics", "a batch panics: its keys are usable", []feature{batches}, batchPanics},
		{"batchExits", "a batch calls Goexit: its keys are usable", []feature{batches}, batchExits},
		{"batchJoinsFailure", "a batch shares a key that fails", []feature{batches}, batchJoinsFailure},
		{"batchLeaves", "a batch's caller is cancelled: others get a value", []feature{batches, contexts}, batchLeaves},
		{"batchOmits", "a batch leaves out a key", []feature{batches}, batchOmits},
		{"batchAdds", "a batch adds a key that was set meanwhile", []feature{batches}, batchAdds},
		{"batchAddsFlight", "a batch adds a key that is being created", []feature{batches}, batchAddsFlight},
		{"batchNeedsItself", "a batch asks for its own key", []feature{batches}, batchNeedsItself},
		{"batchBeside", "a batch fails beside a value: that is not lost", []feature{batches}, batchBeside},
		{"batchBeyondBound", "a batch larger than the bound: nothing it returns is closed", []feature{batches, bounds, listener}, batchBeyondBound},
	}},
	{"Bounds and expiry", "case_bounds.go", []*testCase{
		{"boundKept", "a bound is kept", []feature{bounds, loops}, boundKept},
		{"evictedTold", "what is evicted is told once", []feature{bounds, loops, listener}, evictedTold},
		{"evictedCallback", "a listener of evictions uses the cache", []feature{bounds, listener}, evictedCallback},
		{"evictedInUse", "a value in use is not evicted under its user", []feature{bounds, leases}, evictedInUse},
		{"expired", "1,000 callers of an expired key, one creation", []feature{expiry}, expired},
		{"expiredInFlight", "an expiry during the next creation", []feature{expiry}, expiredInFlight},
		{"expiredTold", "an expired value is told once", []feature{expiry, listener}, expiredTold},
		{"setOver", "values whose time is over are set, beside callers and `Close`", []feature{lives, listener}, setOver},
		{"hungEviction", "a listener hangs: evictions go on", []feature{bounds, listener}, hungEviction},
		{"hungExpiry", "a listener hangs: expiries go on", []feature{expiry, listener}, hungExpiry},
		{"idleUsed", "a value that is used during a sweep stays", []feature{idleness, peeks}, idleUsed},
		{"idleInUse", "a value in use does not expire under its user", []feature{idleness, leases}, idleInUse},
	}},
	{"Deletion and closing", "case_leaving.go", []*testCase{
		{"deleteInFlight", "`Delete` during a creation: fresh afterwards", nil, deleteInFlight},
		{"lateAfterDelete", "`Delete` during a creation: nothing is orphaned", []feature{listener}, lateAfterDelete},
		{"lateAfterSet", "`Set` during a creation: nothing is orphaned", []feature{listener}, lateAfterSet},
		{"clearInFlight", "`Clear` during a creation: fresh afterwards", []feature{clears}, clearInFlight},
		{"lateAfterClear", "`Clear` during a creation: nothing is orphaned", []feature{clears, listener}, lateAfterClear},
		{"setSame", "`Set` of the value that is there: it is not closed", []feature{listener}, setSame},
		{"setSameParts", "`Set` of an equal struct with padding: it is not closed", []feature{listener}, setSameParts},
		{"writeBack", "what the listener writes back is not lost", []feature{listener}, writeBack},
		{"exclusive", "the next creation waits until the old value is closed", []feature{exclusives}, exclusive},
		{"inUse", "a value in use is not closed", []feature{leases}, inUse},
		{"closeInFlight", "`Close` during a creation", []feature{closes}, closeInFlight},
		{"closeHung", "a listener hangs: `Close` ends", []feature{closes, listener}, closeHung},
	}},
	{"What it costs", "case_costs.go", []*testCase{
		{"failedKeys", "100,000 failed keys leave no memory", nil, failedKeys},
		{"deletedKeys", "100,000 deleted keys leave no memory", nil, deletedKeys},
		{"keptErrorKeys", "100,000 kept errors that are over leave no memory", []feature{keptErrors}, keptErrorKeys},
		{"leftWaiters", "1,000 waiters who have left leave no goroutine", []feature{contexts}, leftWaiters},
		{"failedCallers", "1,000 failed callers leave no goroutine", nil, failedCallers},
		{"dropped", "a dropped cache leaves no goroutine", nil, dropped},
		{"hit", "allocations of a hit", nil, hit},
		{"capturingHit", "allocations of a hit, with a function that captures", []feature{captures}, capturingHit},
	}},
}

// cases returns the cases of all groups in order.
func cases() []*testCase {
	var all []*testCase
	for _, g := range groups {
		all = append(all, g.cases...)
	}
	return all
}
