package shardedregistry

import (
	"runtime"

	"github.com/latchfree/latchfree/internal/atomics"
)

// maxAttempts is after how many attempts a call gives up: its function must have changed the
// key itself. Contention does not get there. Of 2 to 1,000 goroutines that did nothing but
// update one key on 2 CPUs, for 1.5 seconds each, no call took more than 284 attempts where
// the function computed for 0 to 100 µs, and 16,775 where it also gave up the processor. A
// function that changes its key has then cost 0.1 seconds, in a transaction 0.2 to 1.
//
// In the model, where few operations contend, few attempts are enough.
func maxAttempts() int { return atomics.Limit(1_000_000, 8) }

// pauses is after how many attempts at most a call makes a pause. One that has failed more
// often has a function that waits in each run, or that changes the key: a pause is of no use.
const pauses = 1000

// retry repeats attempt, which runs a function of the user's and fails if a key has changed
// meanwhile, until it is done. So many attempts have failed before.
func retry(failed int, attempt func() (done bool, err error)) error {
	for ; failed < maxAttempts(); failed++ {
		if 0 < failed && failed <= pauses {
			pause(failed)
		}
		if done, err := attempt(); done {
			return err
		}
	}
	return ErrTooManyRetries
}

// pause lets others change the key when so many attempts have failed. It offers the processor
// to others after 4, 8, 16… attempts: where all processors are busy, that takes milliseconds
// each time.
func pause(failed int) {
	atomics.Backoff(failed)
	if failed >= 4 && failed&(failed-1) == 0 {
		runtime.Gosched()
	}
}
