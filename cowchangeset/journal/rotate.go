package journal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/latchfree/latchfree/cowchangeset/journal/internal/chain"
	"github.com/latchfree/latchfree/internal/folder"
)

// Rotate ends the last segment and begins another one, unless nothing was written to
// the last one. So the lines of all calls until now are in files that do not change any
// more, and can be copied elsewhere. It panics if ctx is nil.
//
// Rotate is blocking: it waits for its turn, as long as ctx lasts, and then for the
// disk. It takes effect when the new segment has its name.
func (j *Journal[E]) Rotate(ctx context.Context) error {
	needContext(ctx, "Rotate")
	return j.log.do(ctx, &call{rotate: true}) // LP(Rotate): in log.rotate
}

// rotate begins the next segment. The caller is the writer.
//
// The segment gets its name when its header is on the disk, and after the end of
// the one before it is. So a segment without a header was damaged, and only the
// last one can have been cut off.
func (g *log) rotate() error {
	if err := g.syncLast(); err != nil {
		return err
	}
	return g.begin()
}

// syncLast syncs the last segment, if anything was not synced, and checks it.
func (g *log) syncLast() error {
	if err := g.put(nil, g.dirty); err != nil {
		return err
	}
	g.settle(outcome{synced: g.dirty})
	return nil
}

// begin begins a segment, which is the last one from then on. The caller is the writer.
func (g *log) begin() error {
	header := g.state.Header()
	if header.Journal == "" {
		header.Journal = g.identity // it is the first segment
	}
	text, hash := header.Encode(nil, g.lines+1, g.hash)
	s := chain.Segment{Number: header.Segment, Size: int64(len(text)), Header: int64(len(text))}
	f, err := g.newSegment(s, text)
	if errors.Is(err, ErrBroken) {
		return g.breakDown(err)
	}
	if err != nil {
		return err
	}
	g.mu.Lock()
	g.state.Apply(header)
	g.segments = append(g.segments, s)
	g.lines, g.hash = g.lines+1, hash
	g.stats.Lines, g.stats.Bytes, g.stats.Syncs = g.stats.Lines+1, g.stats.Bytes+uint64(s.Size), g.stats.Syncs+1
	g.mu.Unlock() // LP(Rotate)
	if g.file != nil {
		g.file.Close() // which has nothing to say: the file was synced
	}
	g.file, g.name = f, s.Name()
	return nil
}

// newSegment makes a segment of a header. It stays open when it gets its name, as far as
// the system allows that: from then on, nothing needs a descriptor that may be missing.
func (g *log) newSegment(s chain.Segment, header []byte) (f folder.File, err error) {
	switch gone, err := g.gone(s); {
	case err != nil:
		return nil, fmt.Errorf("journal: beginning segment %d: %w", s.Number, err)
	case !gone:
		return nil, fmt.Errorf("%w: somebody else has begun segment %d", ErrBroken, s.Number)
	}
	if f, err = g.createWith(s.Name()+chain.Unborn, header); err == nil {
		if err = g.folder.Rename(s.Name()+chain.Unborn, s.Name()); err != nil {
			if gone, _ := g.gone(s); !gone { // it has happened, or nobody knows
				err = fmt.Errorf("%w: %w", ErrBroken, err)
			}
		}
	}
	if err == nil {
		if err = g.folder.Sync(); err == nil && f == nil {
			f, err = g.folder.Edit(s.Name())
		}
		if err != nil {
			err = fmt.Errorf("%w: %w", ErrBroken, err) // it has its name, or not
		}
	}
	if err != nil {
		if f != nil {
			f.Close()
		}
		return nil, fmt.Errorf("journal: beginning segment %d: %w", s.Number, err)
	}
	return f, nil
}

// createWith makes a file with a text, and syncs it. The file is nil if it could not be
// renamed while it is open. If createWith fails, it may leave the file, which the next
// call replaces.
func (g *log) createWith(name string, text []byte) (folder.File, error) {
	if err := g.folder.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	f, err := g.folder.Create(name, g.name)
	if err != nil {
		return nil, err
	}
	if err = folder.Write(f, text); err == nil {
		err = f.Sync()
	}
	if err == nil && folder.MovesOpen {
		return f, nil
	}
	if e := f.Close(); err == nil {
		err = e
	}
	return nil, err
}
