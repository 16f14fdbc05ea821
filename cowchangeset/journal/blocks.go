package journal

import (
	"bytes"
	"io"
	"slices"

	"github.com/latchfree/latchfree/internal/atomics"
)

// blocks reads lines and checks their hashes, many at a time. Ahead of who takes
// them, if that is asked for, so that hashing goes on beside what is done with the
// lines: on a goroutine that ends with the input, or with close.
type blocks struct {
	r     io.Reader
	rest  []byte // what was read and is no line yet
	err   error  // of r
	ready chan *block
	used  chan *block
	quit  chan struct{}
}

// A block is some lines.
type block struct {
	buf   []byte // where they are
	all   []checked
	lines []checked // those that were not taken yet
	rest  []byte    // after the last newline; set with err
	err   error     // what comes after the lines: io.EOF, or an error of the reader
}

// A checked line is one whose hash was looked at.
type checked struct {
	body []byte // what the hash is about
	hash digest
	why  string // it is not that of the body
}

const (
	// blockSize is how much of a file is read at once: so much that handing it
	// over is nothing beside the hashing.
	blockSize = 128 << 10

	// maxAhead is how many blocks wait for who takes them.
	maxAhead = 2
)

// readBlocks reads r. If ahead, r must not wait for others than disks.
func readBlocks(r io.Reader, ahead bool) *blocks {
	b := &blocks{r: r}
	if ahead {
		b.ready, b.used, b.quit = make(chan *block, maxAhead), make(chan *block, maxAhead+2), make(chan struct{})
		atomics.Go(b.run)
	}
	return b
}

// next returns the next block. Last is the one before it, which is not needed any
// more, or nil.
func (b *blocks) next(last *block) *block {
	if b.ready == nil {
		if last == nil {
			last = new(block)
		}
		b.fill(last)
		return last
	}
	if last != nil {
		b.used <- last // for which there is room
	}
	return <-b.ready
}

// close ends reading ahead. It waits for a read that is under way.
func (b *blocks) close() {
	if b.quit == nil {
		return
	}
	close(b.quit)
	for range b.ready {
		// Until the goroutine has ended.
	}
	b.quit = nil
}

func (b *blocks) run() {
	defer close(b.ready)
	for b.err == nil {
		next := new(block)
		select {
		case next = <-b.used:
		default:
		}
		b.fill(next)
		select {
		case b.ready <- next:
		case <-b.quit:
			return
		}
	}
}

// fill reads until there is a line, or the end.
func (b *blocks) fill(to *block) {
	to.buf = append(to.buf[:0], b.rest...)
	to.all, to.rest, to.err = to.all[:0], nil, nil
	end := 0 // of the last line
	for end == 0 && b.err == nil {
		to.buf = slices.Grow(to.buf, blockSize)
		n := 0
		from := len(to.buf)
		n, b.err = b.r.Read(to.buf[from:cap(to.buf)])
		to.buf = to.buf[:from+n]
		end = from + bytes.LastIndexByte(to.buf[from:], '\n') + 1
		if end == from {
			end = 0
		}
	}
	b.rest = append(b.rest[:0], to.buf[end:]...)
	for text := to.buf[:end]; len(text) > 0; {
		n := bytes.IndexByte(text, '\n')
		to.all = append(to.all, check(text[:n]))
		text = text[n+1:]
	}
	to.lines = to.all
	if b.err != nil {
		to.rest, to.err = b.rest, b.err
	}
}

// check looks at the hash of a line, which comes without its newline.
func check(text []byte) checked {
	body, hash, why := cutHash(text)
	return checked{body, hash, why}
}
