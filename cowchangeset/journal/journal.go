package journal

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/internal/atomics"
)

// Journal is a file of changesets: a cowchangeset.Store that is a Loader and an
// Applier. Open makes journals; the zero value is closed. A Journal must not be
// copied. All methods may be called concurrently, though a tracker never makes
// two calls for one changeset at a time.
//
// A call that is told again what the journal has writes nothing and succeeds.
// One that says something else, or comes out of order, fails with ErrConflict and
// writes nothing. A call that fails with anything but ErrBroken has left nothing
// in the file that counts. With ErrBroken it may have: open the file again to
// know.
type Journal[E any] struct {
	_   atomics.NoCopy
	log log
}

var (
	_ cowchangeset.Loader[int] = (*Journal[int])(nil)
	_ cowchangeset.Applier     = (*Journal[int])(nil)
)

// Open opens the journal at path, and makes one, readable by its owner only, if
// there is none; the folder must exist. It reads and checks the whole file. Bytes
// after the last newline are of a write that was cut off: they are removed; see
// Recovered. If anything else is not as a journal has written it, Open returns a
// *CorruptError and leaves the file as it is.
//
// It returns ErrLocked if the file is open as a journal, in this process or
// another one, where that can be told: on the BSDs, illumos, Linux and macOS, and
// not on all network file systems. Elsewhere it is the user's duty to open a file
// once at a time.
func Open[E any](path string, o Options) (*Journal[E], error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	f, size, err := openFile(path)
	if err != nil {
		return nil, err
	}
	j, err := open[E](f, size, o)
	if err == nil {
		err = syncParent(path)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("%w (file %s)", err, path)
	}
	return j, nil
}

// open makes a journal of a file that nobody else uses.
func open[E any](f file, size int64, o Options) (*Journal[E], error) {
	j := &Journal[E]{log: log{file: f, policy: o.Sync}}
	if err := j.log.recover(size); err != nil {
		return nil, err
	}
	j.log.open = true
	return j, nil
}

// Start writes that the changeset exists. Its ordinal is the next one, or that of
// the latest changeset if there was nothing but a Start of that: then it takes
// its place. The ID must be UTF-8 and not empty. Start panics if ctx is nil.
//
// Start is blocking: it waits for its turn, as long as ctx lasts, and then for the
// file. It takes effect when its line is written and, with SyncAlways, synced.
func (j *Journal[E]) Start(ctx context.Context, h cowchangeset.Header) error {
	return j.tell(ctx, "Start", &line{op: opStart, id: h.ID, ordinal: h.Ordinal, previous: h.Previous})
}

// Append writes entries of a changeset, in one line: all of them survive a crash
// or none. Those up to the last Seq that the changeset has are taken for ones
// that were told before, and skipped. If a value cannot be encoded, nothing is
// written, and the error names its Seq; if encoding it panics, so does Append.
// Append panics if ctx is nil.
//
// Append is blocking: it waits for its turn, as long as ctx lasts, and then for
// the file. It takes effect when its line is written and, with SyncAlways,
// synced.
func (j *Journal[E]) Append(ctx context.Context, id string, entries []cowchangeset.Entry[E]) error {
	if ctx == nil {
		panic("journal: Append called with a nil context")
	}
	last, some, err := j.log.last(id)
	if err != nil {
		return err
	}
	for some && len(entries) > 0 && entries[0].Seq <= last {
		entries = entries[1:]
	}
	if len(entries) == 0 {
		return nil
	}
	l := &line{op: opAppend, id: id, count: len(entries), first: entries[0].Seq, last: entries[len(entries)-1].Seq}
	if l.entries, err = encodeEntries(id, entries); err != nil {
		return err
	}
	return j.log.do(ctx, &call{line: l}) // LP(Append): in log.settle
}

// Seal writes that the changeset is complete. It fails with ErrConflict if the
// manifest is not that of the entries that the journal has. It panics if ctx is
// nil.
//
// Seal is blocking: it waits for its turn, as long as ctx lasts, and then for the
// file. It takes effect when its line is written and, with SyncAlways, synced.
func (j *Journal[E]) Seal(ctx context.Context, id string, m cowchangeset.Manifest) error {
	return j.tell(ctx, "Seal", &line{op: opSeal, id: id, count: m.Len, last: m.Last})
}

// Abort writes that the changeset, which is sealed, will not be applied, and why.
// Bytes of the reason that are not UTF-8 become U+FFFD. It panics if ctx is nil.
//
// Abort is blocking: it waits for its turn, as long as ctx lasts, and then for the
// file. It takes effect when its line is written and, with SyncAlways, synced.
func (j *Journal[E]) Abort(ctx context.Context, id, reason string) error {
	return j.tell(ctx, "Abort", &line{op: opAbort, id: id, reason: textual(reason)})
}

// Applied writes how far the changeset, which is sealed, is applied. A number that
// is not above the last one says nothing new. It panics if ctx is nil.
//
// Applied is blocking: it waits for its turn, as long as ctx lasts, and then for
// the file. It takes effect when its line is written and, with SyncAlways,
// synced.
func (j *Journal[E]) Applied(ctx context.Context, id string, next uint64) error {
	return j.tell(ctx, "Applied", &line{op: opApplied, id: id, next: next})
}

// tell writes a line, if it says something new.
func (j *Journal[E]) tell(ctx context.Context, method string, l *line) error {
	if ctx == nil {
		panic("journal: " + method + " called with a nil context")
	}
	return j.log.do(ctx, &call{line: l}) // LP(Start, Seal, Abort, Applied): in log.settle
}

// Sync makes everything durable of which the journal was told by calls that
// returned before. With SyncAlways it is so already. It panics if ctx is nil.
//
// Sync is blocking: it waits for its turn, as long as ctx lasts, and then for the
// file. It takes effect when fsync has returned.
func (j *Journal[E]) Sync(ctx context.Context) error {
	if ctx == nil {
		panic("journal: Sync called with a nil context")
	}
	return j.log.do(ctx, new(call)) // LP(Sync): in log.settle
}

// Recovered returns how many bytes Open has removed from the end of the file:
// those of a write that was cut off by a crash, and of which nobody was told that
// it had succeeded.
//
// Recovered is wait-free. It takes effect at once: the number never changes.
func (j *Journal[E]) Recovered() int64 { return j.log.torn } // LP(Recovered)

// Close ends the journal: calls that wait for their turn, and all later ones, get
// ErrClosed. It calls fsync if anything was written since the last one. If the
// journal is broken, Close returns why, and closes the file all the same.
//
// Close is blocking: it waits for the call that is being written, and for the
// file. It takes effect at its beginning: no call that follows it writes anything.
func (j *Journal[E]) Close() error { return j.log.close() } // LP(Close): in log.close

// last returns the Seq of the last entry of a changeset, and whether it has any.
func (g *log) last(id string) (last uint64, some bool, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.usable(); err != nil {
		return 0, false, err
	}
	c := g.state.byID[id]
	if c == nil {
		return 0, false, nil // log.do says so, in its turn
	}
	return c.last, c.count > 0, nil
}

// encodeEntries returns the entries as they are in a line. It runs user code.
func encodeEntries[E any](id string, entries []cowchangeset.Entry[E]) ([]byte, error) {
	var b []byte
	var value bytes.Buffer
	encoder := json.NewEncoder(&value)
	encoder.SetEscapeHTML(false)
	for i, e := range entries {
		if i > 0 {
			if last := entries[i-1].Seq; e.Seq <= last {
				return nil, fmt.Errorf("%w: append to changeset %q: %s", ErrConflict, id, outOfOrder(e.Seq, last))
			}
			b = append(b, ',')
		}
		value.Reset()
		err := encoder.Encode(e.Value)
		text := bytes.TrimSuffix(value.Bytes(), []byte("\n"))
		if err == nil && tooDeep(text) {
			err = fmt.Errorf("json: nested too deeply to be read back")
		}
		if err != nil {
			return nil, fmt.Errorf("journal: entry %d of changeset %q: %w", e.Seq, id, err)
		}
		b = appendEntry(b, e.Seq, text)
	}
	return b, nil
}

// tooDeep reports whether encoding/json would refuse to read a line with this
// value, because of its limit on nesting, which it has for reading only.
func tooDeep(value []byte) bool {
	const surelyFine = 9000 // the limit is 10,000
	if bytes.Count(value, []byte("{"))+bytes.Count(value, []byte("[")) <= surelyFine {
		return false
	}
	around := append([]byte("[[["), value...) // the line, its entries, the entry
	return !json.Valid(append(around, "]]]"...))
}
