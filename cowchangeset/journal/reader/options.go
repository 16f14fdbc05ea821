package reader

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/latchfree/latchfree/cowchangeset/journal"
	"github.com/latchfree/latchfree/internal/folder"
)

// Options holds a Reader's settings. The zero value means the defaults.
type Options struct {
	// Upcast converts values that an older program has written in another form: see
	// journal.Options. Nil changes nothing.
	Upcast func(journal.Value) (json.RawMessage, error)

	// Identity, if it is not empty, makes all methods fail unless the journal has this
	// identity. See Journal.Identity.
	Identity string

	// PollInterval is how often Follow looks for more lines. Zero means 100 ms.
	PollInterval time.Duration

	simulated // by tests of this module
}

type simulated = folder.Simulated

const defaultPoll = 100 * time.Millisecond

// validate returns an error that names the setting at fault.
func (o Options) validate() error {
	if o.PollInterval < 0 {
		return fmt.Errorf("reader: Options.PollInterval %v: must not be negative", o.PollInterval)
	}
	return nil
}
