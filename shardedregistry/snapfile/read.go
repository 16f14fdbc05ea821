package snapfile

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"

	"github.com/latchfree/latchfree/shardedregistry"
)

// Read returns a new registry with what was written to src, which it reads to its end.
// An error is a [*CorruptError], or that of src, of a codec, or of
// [shardedregistry.Restore]; then there is no registry.
//
// Read allocates no more than what it has read calls for, whatever lengths src
// contains.
//
// Read panics if src is nil.
func Read[K comparable, V any](src io.Reader, config shardedregistry.Config[K, V], f Format[K, V]) (*shardedregistry.Registry[K, V], error) {
	if src == nil {
		panic("snapfile: Read called with a nil reader")
	}
	f = f.withDefaults()
	d := decoder{r: bufio.NewReader(src)}
	entries, last, err := d.header()
	if err != nil {
		return nil, err
	}
	r, failed := shardedregistry.Restore(config, last, func(yield func(shardedregistry.Entry[K, V]) bool) {
		for ; entries > 0; entries-- {
			var e shardedregistry.Entry[K, V]
			if e, err = readEntry(&d, f); err != nil || !yield(e) {
				return
			}
		}
		err = d.end()
	})
	switch {
	case err != nil:
		return nil, err
	case failed != nil:
		return nil, fmt.Errorf("snapfile: at byte %d: %w", d.from, failed)
	}
	return r, nil
}

// decoder reads the parts of a file.
type decoder struct {
	r    *bufio.Reader
	sum  uint32
	at   int64 // how many bytes were read
	from int64 // where the part begins that is being read
}

// corrupt returns the error for the part that is being read.
func (d *decoder) corrupt(reason string) error {
	return &CorruptError{Offset: d.from, Reason: reason}
}

// chunk is how much is allocated for what may not be there.
const chunk = 64 << 10

// take reads n bytes, and allocates at most about twice as many as there are.
func (d *decoder) take(n int) (b []byte, err error) {
	for len(b) < n {
		b = slices.Grow(b, min(n-len(b), max(len(b), chunk)))
		if _, err := d.r.Peek(1); errors.Is(err, io.EOF) { // which gives up when a reader reads nothing
			return nil, d.corrupt(fmt.Sprintf("the file ends at byte %d, within this part", d.at))
		} else if err != nil {
			return nil, fmt.Errorf("snapfile: at byte %d: %w", d.at, err)
		}
		got, _ := d.r.Read(b[len(b):min(n, cap(b))]) // what is buffered, or more
		b = b[:len(b)+got]
		d.at += int64(got)
	}
	d.sum = crc32.Update(d.sum, castagnoli(), b)
	return b, nil
}

// check reads the checksum of what was read so far.
func (d *decoder) check() error {
	want := d.sum
	sum, err := d.take(sumSize)
	d.sum = want
	if err != nil {
		return err
	}
	if binary.LittleEndian.Uint32(sum) != want {
		return d.corrupt("the checksum does not match")
	}
	return nil
}

// header reads the first part.
func (d *decoder) header() (entries uint64, last shardedregistry.Version, err error) {
	b, err := d.take(headerSize)
	if err != nil {
		return 0, 0, err
	}
	if string(b[:len(magic)]) != magic {
		return 0, 0, d.corrupt("this is no file of this package")
	}
	b = b[len(magic):]
	if n := binary.LittleEndian.Uint32(b); n != format {
		return 0, 0, d.corrupt(fmt.Sprintf("the format is %d, and this package reads %d", n, format))
	}
	return binary.LittleEndian.Uint64(b[4:]), shardedregistry.Version(binary.LittleEndian.Uint64(b[12:])), d.check()
}

func readEntry[K comparable, V any](d *decoder, f Format[K, V]) (e shardedregistry.Entry[K, V], err error) {
	d.from = d.at
	b, err := d.take(entrySize)
	if err != nil {
		return e, err
	}
	key, value := binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])
	if err := checkLengths(uint64(key), uint64(value)); err != nil {
		return e, d.corrupt(err.Error())
	}
	e.Version = shardedregistry.Version(binary.LittleEndian.Uint64(b[8:]))
	keyText, err := d.take(int(key))
	if err != nil {
		return e, err
	}
	valueText, err := d.take(int(value))
	if err != nil {
		return e, err
	}
	if err := d.check(); err != nil {
		return e, err
	}
	if e.Key, err = f.Keys.Decode(keyText); err != nil {
		return e, fmt.Errorf("snapfile: the key at byte %d: %w", d.from, err)
	}
	if e.Value, err = f.Values.Decode(valueText); err != nil {
		return e, fmt.Errorf("snapfile: the value at byte %d, of key %v: %w", d.from, e.Key, err)
	}
	return e, nil
}

// end makes sure that nothing follows.
func (d *decoder) end() error {
	d.from = d.at
	switch _, err := d.r.ReadByte(); {
	case err == nil:
		return d.corrupt("something follows the last entry")
	case !errors.Is(err, io.EOF):
		return fmt.Errorf("snapfile: at byte %d: %w", d.at, err)
	}
	return nil
}
