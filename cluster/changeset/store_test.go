package changeset_test

import (
	"testing"

	"github.com/latchfree/latchfree/cluster/changeset"
	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/cowchangeset/storetest"
)

// The Store keeps what the documentation of cowchangeset.Store asks for.
func TestStore(t *testing.T) {
	t.Parallel()
	js := single(t)
	storetest.Run(t, func(t *testing.T) storetest.Opener {
		name := stream(t, js, 1)
		return func() (cowchangeset.Loader[string], error) {
			return changeset.Open(background, js, changeset.Options[string]{Stream: name})
		}
	})
}
