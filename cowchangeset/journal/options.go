package journal

import (
	"encoding/json"
	"fmt"

	"github.com/latchfree/latchfree/internal/folder"
)

// Options holds a Journal's settings. The zero value means the defaults.
type Options struct {
	// Sync says when fsync is called. The zero value is SyncAlways.
	Sync SyncPolicy

	// SegmentSize is the number of bytes in a segment, without its header, at which another
	// one begins; the last call may exceed it. Open reads the last segment: small ones open
	// faster. Zero means 32 MiB.
	SegmentSize int64

	// MaxEntry is the largest number of bytes of JSON in an entry. Zero means 16 MiB.
	MaxEntry int

	// MustExist makes Open fail where it would make a journal, with an error that matches
	// fs.ErrNotExist. So a disk that is not mounted does not look like an empty journal.
	MustExist bool

	// Identity, if it is not empty, makes Open fail unless the journal has this
	// identity. See Journal.Identity.
	Identity string

	// Archive is a directory, on the same file system and of this journal alone, to
	// which Prune moves segments. If it is empty, Prune removes them.
	Archive string

	// Upcast converts values that an older program has written in another form. It gets
	// each value before it is decoded, and returns the JSON to decode in its place. It
	// must neither change nor keep its argument. Nil changes nothing.
	Upcast func(Value) (json.RawMessage, error)

	simulated // by tests of this module
}

type simulated = folder.Simulated

// Defaults of Options.
const (
	defaultSegmentSize = 32 << 20
	defaultMaxEntry    = 16 << 20
)

// SyncPolicy says which crashes the work of a call survives that returned nil.
type SyncPolicy uint8

const (
	// SyncAlways calls fsync before each call returns, once for all that wait at the
	// same time. The work of a call survives a crash of the machine, as far as its disk
	// keeps what it has confirmed.
	SyncAlways SyncPolicy = iota

	// SyncNever calls fsync in Open, Sync and Close only, and at the end of a segment.
	// The work of a call survives the end of the process, however it ends. A crash of
	// the machine may lose all work since the last fsync, and may leave a segment that
	// Open finds corrupt there.
	SyncNever
)

// String returns the constant's name.
func (p SyncPolicy) String() string {
	switch p {
	case SyncAlways:
		return "SyncAlways"
	case SyncNever:
		return "SyncNever"
	}
	return fmt.Sprintf("SyncPolicy(%d)", uint8(p))
}

// validate returns an error that names the setting at fault.
func (o Options) validate() error {
	switch {
	case o.Sync > SyncNever:
		return fmt.Errorf("journal: Options.Sync %v: must be SyncAlways or SyncNever", o.Sync)
	case o.SegmentSize < 0:
		return fmt.Errorf("journal: Options.SegmentSize %d: must not be negative", o.SegmentSize)
	case o.MaxEntry < 0:
		return fmt.Errorf("journal: Options.MaxEntry %d: must not be negative", o.MaxEntry)
	}
	return nil
}
