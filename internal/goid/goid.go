// Package goid tells goroutines apart. An ID is slow, about a microsecond, and
// meant for paths that have already failed many times. A Token is quick, and
// means nothing once its goroutine has ended.
package goid

import "runtime"

// prefix is what a stack trace starts with; the runtime has printed it so
// since Go 1.0.
const prefix = "goroutine "

// ID returns the id of the calling goroutine, which no other goroutine of the
// process ever has. It returns 0, which no goroutine has, if the runtime stops
// printing the id.
func ID() uint64 {
	var buf [64]byte // room for the prefix, 20 digits and the state
	return parse(buf[:runtime.Stack(buf[:], false)])
}

// parse reads the number after prefix.
func parse(trace []byte) (id uint64) {
	if len(trace) < len(prefix) || string(trace[:len(prefix)]) != prefix {
		return 0
	}
	for _, c := range trace[len(prefix):] {
		if c < '0' || c > '9' {
			break
		}
		id = id*10 + uint64(c-'0')
	}
	return id
}
