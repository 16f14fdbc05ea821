package breakerhttp

import "github.com/latchfree/latchfree/internal/atomics"

// See internal/atomics/inline.go.
var _ = inlined

func inlined(b *atomics.Bool) { atomics.InlineBool(b) }
