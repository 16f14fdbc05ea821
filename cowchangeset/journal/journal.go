package journal

import (
	"bytes"
	"context"
	"fmt"

	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/cowchangeset/journal/internal/chain"
	"github.com/latchfree/latchfree/internal/atomics"
)

// Journal is a directory of changesets: a cowchangeset.Store that implements all its
// optional interfaces. Open makes journals; the zero value is closed. A Journal must
// not be copied. All methods may be called concurrently.
//
// A call that repeats what the journal has already writes nothing and succeeds. A call
// that contradicts it, or comes out of order, fails with ErrConflict and writes
// nothing. A call that fails with any error but ErrBroken has left nothing in the
// journal that counts; with SyncNever, a crash of the machine may bring it back. With
// ErrBroken it may have left something: open the journal again to know.
type Journal[E any] struct {
	_      atomics.NoCopy
	values chain.Values[E]
	log    log
}

var (
	_ cowchangeset.Loader[int]    = (*Journal[int])(nil)
	_ cowchangeset.Applier        = (*Journal[int])(nil)
	_ cowchangeset.Validator[int] = (*Journal[int])(nil)
	_ cowchangeset.Claimer        = (*Journal[int])(nil)
	_ cowchangeset.Pruner         = (*Journal[int])(nil)
)

// Start writes that the changeset exists. Its ordinal is the next one, or that of the
// latest changeset if only its Start was written: then the new changeset replaces that.
// The ID must be UTF-8 and not empty. Start panics if ctx is nil.
//
// Start is blocking: it waits for its turn, as long as ctx lasts, and then for the
// file. It takes effect when its line is written and, with SyncAlways, synced.
func (j *Journal[E]) Start(ctx context.Context, h cowchangeset.Header) error {
	return j.tell(ctx, "Start", &chain.Line{Op: chain.OpStart, ID: h.ID, Ordinal: h.Ordinal, Previous: h.Previous})
}

// Append writes entries of a changeset, in one line: all of them survive a crash or
// none. It skips entries up to the last Seq that the changeset has, as repeated ones.
// If a value cannot be encoded, Append writes nothing, and the error names its Seq; if
// encoding the value panics, so does Append. See Validate. Append panics if ctx is nil.
//
// Append is blocking: it waits for its turn, as long as ctx lasts, and then for the
// file. It takes effect when its line is written and, with SyncAlways, synced.
func (j *Journal[E]) Append(ctx context.Context, id string, entries []cowchangeset.Entry[E]) error {
	needContext(ctx, "Append")
	last, some, err := j.log.last(id)
	if err != nil {
		return err
	}
	for some && len(entries) > 0 && entries[0].Seq <= last {
		entries = entries[1:]
	}
	if len(entries) == 0 {
		return j.log.do(ctx, new(call)) // which checks that they are still there
	}
	l := &chain.Line{Op: chain.OpAppend, ID: id, Count: uint64(len(entries)), First: entries[0].Seq, Last: entries[len(entries)-1].Seq}
	if l.Entries, err = j.encode(id, entries); err != nil {
		return err
	}
	return j.log.do(ctx, &call{line: l}) // LP(Append): in log.settle
}

// encode returns entries as they are in a line.
func (j *Journal[E]) encode(id string, entries []cowchangeset.Entry[E]) ([]byte, error) {
	var b []byte
	var buf bytes.Buffer
	for i, e := range entries {
		if i > 0 {
			if last := entries[i-1].Seq; e.Seq <= last {
				return nil, fmt.Errorf("%w: append to changeset %q: %s", ErrConflict, id, chain.OutOfOrder(e.Seq, last))
			}
			b = append(b, ',')
		}
		if e.Seq >= chain.MaxSeq {
			return nil, fmt.Errorf("%w: append to changeset %q: seq %d is beyond what a changeset can have", ErrConflict, id, e.Seq)
		}
		text, err := j.values.Encode(&buf, e.Value)
		if err != nil {
			return nil, fmt.Errorf("journal: entry %d of changeset %q: %w", e.Seq, id, err)
		}
		b = chain.AppendEntry(b, e.Seq, text)
	}
	return b, nil
}

// Seal writes that the changeset is complete. It fails with ErrConflict if the manifest
// does not match the entries that the journal has. It panics if ctx is nil.
//
// Seal is blocking: it waits for its turn, as long as ctx lasts, and then for the file.
// It takes effect when its line is written and, with SyncAlways, synced.
func (j *Journal[E]) Seal(ctx context.Context, id string, m cowchangeset.Manifest) error {
	return j.tell(ctx, "Seal", &chain.Line{Op: chain.OpSeal, ID: id, Count: uint64(m.Len), Last: m.Last})
}

// Abort writes that the changeset, which is sealed, will not be applied, and why.
// Bytes of the reason that are not UTF-8 become U+FFFD. It panics if ctx is nil.
//
// Abort is blocking: it waits for its turn, as long as ctx lasts, and then for the
// file. It takes effect when its line is written and, with SyncAlways, synced.
func (j *Journal[E]) Abort(ctx context.Context, id, reason string) error {
	return j.tell(ctx, "Abort", &chain.Line{Op: chain.OpAbort, ID: id, Reason: chain.Textual(reason)})
}

// Applied writes how far the changeset, which is sealed, is applied. A number that is
// not above the last one changes nothing. It panics if ctx is nil.
//
// Applied is blocking: it waits for its turn, as long as ctx lasts, and then for the
// file. It takes effect when its line is written and, with SyncAlways, synced.
func (j *Journal[E]) Applied(ctx context.Context, id string, next uint64) error {
	return j.tell(ctx, "Applied", &chain.Line{Op: chain.OpApplied, ID: id, Next: next})
}

// tell writes a line, if it says something new.
func (j *Journal[E]) tell(ctx context.Context, method string, l *chain.Line) error {
	needContext(ctx, method)
	return j.log.do(ctx, &call{line: l}) // LP(Start, Seal, Abort, Applied): in log.settle
}

// Sync makes the work of all calls durable that returned before. With SyncAlways it is
// so already. It panics if ctx is nil.
//
// Sync is blocking: it waits for its turn, as long as ctx lasts, and then for the file.
// It takes effect when fsync has returned.
func (j *Journal[E]) Sync(ctx context.Context) error {
	needContext(ctx, "Sync")
	return j.log.do(ctx, &call{sync: true}) // LP(Sync): in log.settle
}

// Recovered returns how many bytes Open has removed from the end of the last segment:
// those of a write that a crash has cut off, whose call had not returned nil.
//
// Recovered is wait-free. It takes effect at once: the number never changes.
func (j *Journal[E]) Recovered() int64 { return j.log.torn } // LP(Recovered)

// Close ends the journal: calls that wait for their turn, and all later ones, get
// ErrClosed. It calls fsync if anything was written since the last one. If the journal
// is broken, Close returns that error, and closes the file all the same.
//
// Close is blocking: it waits for the call that is being written, and for the file. It
// takes effect at its beginning: no call that follows it writes anything.
func (j *Journal[E]) Close() error { return j.log.close() } // LP(Close): in log.close

// Validate returns an error if the journal would refuse to keep e: if e cannot be
// encoded, if its JSON is longer than Options.MaxEntry or not UTF-8, or if it could not
// be decoded. An accepted value must not be changed afterwards.
//
// Validate is wait-free, but for the code of e. It takes effect at once: it only looks
// at e.
func (j *Journal[E]) Validate(e E) error { // LP(Validate)
	if _, err := j.values.Encode(new(bytes.Buffer), e); err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	return nil
}

// Claim reserves the journal for one tracker. It returns ErrClaimed if the journal is
// claimed already, until Release or until it is opened again, and ErrClosed after
// Close. It panics if ctx is nil.
//
// Claim is blocking: it waits for other calls that look at the journal's state. It
// takes effect when the journal is seen to be claimed, or marked.
func (j *Journal[E]) Claim(ctx context.Context) error {
	needContext(ctx, "Claim")
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	j.log.mu.Lock()
	defer j.log.mu.Unlock()
	if err := j.log.usable(); err != nil {
		return err
	}
	if j.log.claimed {
		return ErrClaimed // LP(Claim)
	}
	j.log.claimed, j.log.used = true, false // LP(Claim)
	return nil
}

// Release undoes Claim, as a Resume that fails needs it. Once the tracker has used the
// journal, Release does nothing: that tracker may go on, and beside another one its
// entries would be taken for repeated ones and lost. For another tracker, open the
// journal again.
//
// Release is blocking as Claim is. It takes effect when the mark is removed.
func (j *Journal[E]) Release() {
	j.log.mu.Lock()
	defer j.log.mu.Unlock()
	j.log.claimed = j.log.claimed && j.log.used // LP(Release)
}

// Identity returns random text that identifies the journal. It was made with the
// journal and is in the header of each segment. Keep it elsewhere, and give it to Open
// as Options.Identity: Open then notices if another journal has taken this one's place.
//
// Identity is wait-free. It takes effect at once: it never changes.
func (j *Journal[E]) Identity() string { return j.log.identity } // LP(Identity)

// Hash returns the journal's last line and its hash. reader.Verify checks later that the
// lines up to there are unchanged.
//
// Hash is blocking: it waits for other calls that look at the journal's state. It takes
// effect when the state is read.
func (j *Journal[E]) Hash() chain.Anchor {
	j.log.mu.Lock()
	defer j.log.mu.Unlock()
	return chain.Anchor{Line: j.log.lines, Hash: j.log.hash.String()} // LP(Hash)
}

// last returns the Seq of the last entry of a changeset, and whether it has any.
func (g *log) last(id string) (last uint64, some bool, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.usable(); err != nil {
		return 0, false, err
	}
	c := g.state.Find(id)
	if c == nil {
		return 0, false, nil // log.do says so, in its turn
	}
	return c.Last, c.Count > 0, nil
}
