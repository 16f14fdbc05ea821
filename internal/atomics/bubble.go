//go:build !modelcheck

package atomics

import (
	"runtime"
	"time"
)

// Bubble returns which bubble of testing/synctest the caller is in; zero: in none. A timer that was
// made in a bubble must not be stopped outside, and does not fire any more when the bubble has ended.
//
// Only in a bubble does the clock have no monotonic reading. Then, in tests, the text of the stack
// says which it is.
func Bubble() (number uint64) {
	if now := time.Now(); now != now.Round(0) {
		return 0
	}
	const before = ", synctest bubble "
	var head [128]byte
	text := string(head[:runtime.Stack(head[:], false)])
	for i := range text {
		if text[i] == '\n' {
			break
		}
		if len(text)-i <= len(before) || text[i:i+len(before)] != before {
			continue
		}
		for _, digit := range []byte(text[i+len(before):]) {
			if digit < '0' || digit > '9' {
				return number
			}
			number = number*10 + uint64(digit-'0')
		}
	}
	return 1<<64 - 1 // some bubble
}
