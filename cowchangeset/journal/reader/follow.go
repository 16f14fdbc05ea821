package reader

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"iter"
	"slices"
	"time"

	"github.com/latchfree/latchfree/cowchangeset/journal"
	"github.com/latchfree/latchfree/cowchangeset/journal/internal/chain"
	"github.com/latchfree/latchfree/internal/atomics"
)

// Events yields the events of the lines that are there when the loop begins, in their
// order: those with a number above after, which is 0 or the number of a line that the
// caller has seen. Of segments that end before that, it reads only the headers. If it fails, it yields the error and ends. That is ErrDropped if
// some of these lines were dropped, unless after is 0, which means all lines that are
// kept; ErrRewound if the journal ends before the line with that number; or the cause
// of ctx. Events panics if ctx is nil or after negative.
//
// Events is blocking: it waits for the files. It takes effect when the loop begins.
func (r *Reader[E]) Events(ctx context.Context, after int) iter.Seq2[Event[E], error] {
	return r.events(ctx, "Events", after, false)
}

// Follow is Events, and goes on with the lines that come, also in segments that begin
// later, until ctx ends; then it yields the cause. It looks for more each
// Options.PollInterval. It yields a line when that has its newline, which may be before
// it is synced.
//
// If segments are dropped before Follow has read them, it yields ErrDropped. If lines
// that it has yielded are taken back, it yields ErrRewound when it sees that. Damage
// may be a line that is being written, so Follow looks again several times before it
// yields a *CorruptError.
//
// Follow is blocking: it waits for the files, and for more as long as ctx lasts. It
// takes effect line by line, when it sees each.
func (r *Reader[E]) Follow(ctx context.Context, after int) iter.Seq2[Event[E], error] {
	return r.events(ctx, "Follow", after, true)
}

func (r *Reader[E]) events(ctx context.Context, method string, after int, live bool) iter.Seq2[Event[E], error] {
	needContext(ctx, method)
	if after < 0 {
		panic("reader: " + method + " called with a negative line")
	}
	return chain.Loop(func(yield func(Event[E]) bool) error {
		f := &follower{look: r.look, Scanner: chain.Scan(nil, nil)}
		f.Waits, f.Skims, f.After = live, after > 0, after
		return r.follow(ctx, f, after, yield)
	})
}

// doubts is how often Follow looks again at apparent damage: often enough for a file
// system to show all of a write, and not so often that damage is reported late.
const doubts = 5

func (r *Reader[E]) follow(ctx context.Context, f *follower, after int, yield func(Event[E]) bool) error {
	d := &chain.Decoder[E]{Upcast: r.options.Upcast}
	take := func(l *chain.Line) error {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case f.Read == 1 && after > 0 && f.Number-1 > after:
			return journal.ErrDropped
		case l.Journal != "" && chain.Identify(l.Journal, r.options.Identity) != nil:
			return chain.Identify(l.Journal, r.options.Identity)
		case f.Number <= after:
			return nil
		}
		e, err := eventOf(r.path, f.Scanner, l, d)
		if err == nil && !yield(e) {
			err = chain.ErrLeft
		}
		return err
	}
	// A doubtful look is repeated; only a writer, by progress or by taking lines back,
	// makes it find something else. Where a whole line has lost its newline, nobody writes.
	for doubted := 0; ; {
		before := f.Number
		err := f.catchUp(take) // LP(Events, Follow)
		if f.Number > before {
			doubted = 0
		}
		switch {
		case err == nil && f.Scanner.Number < after && !(f.Waits && f.Torn > 0 && f.Number+1 == after):
			return ErrRewound
		case err == nil && !f.Waits:
			return nil
		case err == nil:
			doubted = 0
		case !dubious(err) || f.Unterminated || !f.Waits && doubted == 1 || doubted == doubts:
			return err
		default:
			doubted++
		}
		if f.Waits && !pause(ctx, cmp.Or(r.options.PollInterval, defaultPoll)) {
			return context.Cause(ctx)
		}
	}
}

// pause waits, and reports true unless ctx has ended.
func pause(ctx context.Context, d time.Duration) bool {
	over := atomics.MakeEvent()
	stop := atomics.After(d, over.Fire)
	defer stop()
	return over.WaitContext(ctx) == nil && ctx.Err() == nil
}

// A follower reads the lines of a journal as they come, and has no file open between two
// calls of catchUp.
type follower struct {
	*chain.Scanner
	look func(since uint64) (*chain.View, error)

	// Where the next catchUp goes on: behind the last line that was taken.
	segment uint64 // 0 before the first
	next    int64  // in that
}

// catchUp calls each with the lines that are there now and were not taken yet.
func (f *follower) catchUp(each func(*chain.Line) error) error {
	v, err := f.look(f.segment)
	if err != nil {
		return err
	}
	defer v.Close()
	defer f.Close()
	f.From, f.Files, f.At, f.Live, f.Ended = v, slices.Clone(v.Files), -1, true, false
	gone := false
	if f.Read > 0 {
		if gone, err = f.resume(v); err != nil {
			return err
		}
		if !gone && len(v.Files) == 1 && v.Files[0].Size == f.next {
			f.Torn = 0
			return f.Missing()
		}
	}
	for {
		l, err := f.Scanner.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil && gone && dubious(err) {
			return journal.ErrDropped // the next line does not follow the last one of f
		}
		if err != nil {
			return err
		}
		if n := len(f.State.Holes); gone && n > 0 && f.State.Holes[n-1].Segment+1 == l.Segment {
			return journal.ErrDropped
		}
		gone = false
		f.segment, f.next = f.Files[f.At].Number, f.Size
		if err := each(l); err != nil {
			return err
		}
	}
}

// dubious reports whether an error may pass: damage behind the lines that were taken, or
// segments that are missing: see look.
func dubious(err error) bool {
	var corrupt *journal.CorruptError
	return errors.As(err, &corrupt) || errors.Is(err, fs.ErrNotExist)
}

// resume opens the segment in which the last catchUp ended. It reports whether that is gone.
//
// The text before that place must be the end of the line that was taken last. Its hash
// is of all lines up to there: if there is another line, some were taken back, however
// long the file has become.
func (f *follower) resume(v *chain.View) (gone bool, err error) {
	switch {
	case len(v.Files) == 0:
		return false, ErrRewound
	case v.Files[0].Number > f.segment:
		f.Whole = true
		return true, nil
	}
	if err := f.Open(0, f.next, v.Files[0].Size, f.Scanner.Number, f.Hash); err != nil {
		return false, err
	}
	f.Size = f.next
	if f.next > v.Files[0].Size { // though it may have that again by now
		return false, ErrRewound
	}
	same, err := chain.Ends(f.File, f.next, f.Hash)
	if err == nil && !same {
		err = ErrRewound
	}
	return false, err
}
