package journal

import "fmt"

// Options holds a Journal's settings. The zero value means the defaults.
type Options struct {
	// Sync says when fsync is called. The zero value is SyncAlways.
	Sync SyncPolicy
}

// SyncPolicy says what a call of the journal that returned nil survives.
type SyncPolicy uint8

const (
	// SyncAlways calls fsync before each call returns, once for all that wait at
	// the same time. What was told survives a crash of the machine, as far as
	// its disk keeps what it has confirmed.
	SyncAlways SyncPolicy = iota

	// SyncNever calls fsync in Open, Sync and Close only. What was told survives
	// the end of the process, however it ends. A crash of the machine may lose
	// what was told since the last of these calls, and may leave a file that
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
	if o.Sync > SyncNever {
		return fmt.Errorf("journal: Options.Sync is %v", o.Sync)
	}
	return nil
}
