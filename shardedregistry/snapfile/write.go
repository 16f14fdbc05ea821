package snapfile

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/latchfree/latchfree/shardedregistry"
)

// What a file begins with, and the sizes of its parts without key and value. The first
// byte is no text, and a transfer that treats the file as text changes the others.
const (
	magic      = "\x89LFS\r\n\x1a\n"
	format     = 1
	headerSize = 28
	entrySize  = 16
	sumSize    = 4
)

// longest bounds the length of a key and of a value.
const longest = 1 << 30

// Write writes what r holds at one instant to w. An error is that of w or of a codec,
// or says that a key cannot be read back; what was written by then is no whole file.
// Versions above [shardedregistry.MaxRestored], which Read would not accept, are an
// error that matches [shardedregistry.ErrInvalidVersion], before anything is written.
//
// Write panics if w or r is nil.
func Write[K comparable, V any](w io.Writer, r *shardedregistry.Registry[K, V], f Format[K, V]) error {
	if w == nil {
		panic("snapfile: Write called with a nil writer")
	}
	if r == nil {
		panic("snapfile: Write called with a nil registry")
	}
	s := r.Snapshot()
	last := s.Last()
	if last > shardedregistry.MaxRestored { // no version of the snapshot is above last
		return fmt.Errorf("snapfile: version %d cannot be restored: %w", last, shardedregistry.ErrInvalidVersion)
	}
	f = f.withDefaults()
	e := encoder{w: bufio.NewWriter(w)}
	e.header(s.Len(), last)
	for entry := range s.Entries() {
		if err := writeEntry(&e, f, entry); err != nil {
			return fmt.Errorf("snapfile: key %v: %w", entry.Key, err)
		}
	}
	if err := e.w.Flush(); err != nil {
		return fmt.Errorf("snapfile: %w", err)
	}
	return nil
}

// encoder writes the parts of a file. The error of the writer shows in the end.
type encoder struct {
	w          *bufio.Writer
	sum        uint32
	head       [headerSize]byte // of the part that is being written
	key, value []byte
}

// castagnoli is the polynomial of CRC-32C, for which processors have instructions.
func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// write writes parts and then the checksum.
func (e *encoder) write(parts ...[]byte) {
	for _, p := range parts {
		e.sum = crc32.Update(e.sum, castagnoli(), p)
		e.w.Write(p)
	}
	var sum [sumSize]byte
	binary.LittleEndian.PutUint32(sum[:], e.sum)
	e.w.Write(sum[:])
}

func (e *encoder) header(entries int, last shardedregistry.Version) {
	b := append(e.head[:0], magic...)
	b = binary.LittleEndian.AppendUint32(b, format)
	b = binary.LittleEndian.AppendUint64(b, uint64(entries))
	b = binary.LittleEndian.AppendUint64(b, uint64(last))
	e.write(b)
}

func writeEntry[K comparable, V any](e *encoder, f Format[K, V], entry shardedregistry.Entry[K, V]) error {
	// The codecs' results are copied: they may be memory that others use.
	key, err := f.Keys.Append(e.key[:0], entry.Key)
	if err != nil {
		return fmt.Errorf("encoding the key: %w", err)
	}
	e.key = append(e.key[:0], key...)
	value, err := f.Values.Append(e.value[:0], entry.Value)
	if err != nil {
		return fmt.Errorf("encoding the value: %w", err)
	}
	if err := checkLengths(uint64(len(key)), uint64(len(value))); err != nil {
		return err
	}
	e.value = append(e.value[:0], value...)
	back, err := f.Keys.Decode(bytes.Clone(e.key))
	if err != nil {
		return fmt.Errorf("decoding the key: %w", err)
	}
	if back != entry.Key {
		return fmt.Errorf("the codec makes %v of it", back)
	}
	b := binary.LittleEndian.AppendUint32(e.head[:0], uint32(len(e.key)))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(e.value)))
	b = binary.LittleEndian.AppendUint64(b, uint64(entry.Version))
	e.write(b, e.key, e.value)
	return nil
}

// checkLengths returns an error for a key or a value that is too long.
func checkLengths(key, value uint64) error {
	if key > longest || value > longest {
		return fmt.Errorf("a key of %d and a value of %d bytes, at most %d each", key, value, longest)
	}
	return nil
}
