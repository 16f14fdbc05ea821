package atomics

// Backoff is called when a CAS, or an attempt that ends in one, has failed so many times
// in one operation. One that tries again at once takes the cache line away from others
// that get on, and fails again. Backoff runs so many empty steps, of about a third of a
// nanosecond, and twice as many each time, at most eight times as many: exponential backoff, after
// Dice, Hendler and Mirsky, "Lightweight Contention Management for Efficient
// Compare-and-Swap Operations" (Euro-Par 2013).
func Backoff(steps, failed int) {
	for range Limit(steps, 0) << min(failed-1, 3) {
	}
}
