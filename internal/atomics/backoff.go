package atomics

// Backoff is called when a CAS, or an attempt that ends in one, has failed so many times
// in one operation. One that tries again at once takes the cache line away from others
// that get on, and fails again. Backoff takes about half a microsecond, in which others
// succeed some tens of times, and twice as long each time, at most four: exponential backoff,
// after Dice, Hendler and Mirsky, "Lightweight Contention Management for Efficient
// Compare-and-Swap Operations" (Euro-Par 2013).
func Backoff(failed int) {
	for range Limit(1600, 0) << min(failed-1, 3) {
	}
}
