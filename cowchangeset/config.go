package cowchangeset

import "crypto/rand"

// Config holds a Tracker's settings. The zero Config is valid.
type Config struct {
	// NewID returns the ID of a new changeset; nil means crypto/rand.Text. It
	// is called from Start, by many goroutines at once, before anything
	// changes; it may panic or block. The tracker does not compare IDs: they
	// are as unique as NewID makes them. An empty ID makes Start fail.
	NewID func() string
}

// New returns a tracker with the given settings. At present every Config is
// valid and the error is nil.
func New[E any](config Config) (*Tracker[E], error) {
	return &Tracker[E]{newID: config.NewID}, nil
}

// MustNew is New for settings that are known to be valid; it panics on others.
func MustNew[E any](config Config) *Tracker[E] {
	t, err := New[E](config)
	if err != nil {
		panic(err)
	}
	return t
}

// id returns the ID of a new changeset. It runs user code.
func (t *Tracker[E]) id() (string, error) {
	newID := t.newID
	if newID == nil {
		newID = rand.Text
	}
	id := newID()
	if id == "" {
		return "", errEmptyID
	}
	return id, nil
}
