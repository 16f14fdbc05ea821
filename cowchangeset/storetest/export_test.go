package storetest

// The checks, which Run makes one after the other.
var (
	Calls    = calls
	IDs      = ids
	Trackers = trackers
	Claims   = claims
)
