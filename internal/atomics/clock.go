//go:build !modelcheck

package atomics

import "time"

// Now is time.Now. Protocols that compare times read the clock through the
// seam, because when they read it is part of the protocol.
func Now() time.Time { return time.Now() }

// Since is time.Since.
func Since(t time.Time) time.Duration { return time.Since(t) }
