//go:build modelcheck

package mc

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"sort"
)

// objects are the objects of the heap, by address. Where in an object a word
// is does not change from run to run, as its address does.
type objects []object

type object struct{ base, size uintptr }

// find returns the object that holds addr.
func (o objects) find(addr uintptr) (object, bool) {
	i := sort.Search(len(o), func(i int) bool { return o[i].base > addr }) - 1
	if i < 0 || addr >= o[i].base+o[i].size {
		return object{}, false
	}
	return o[i], true
}

// The tags of the records that a heap dump has up to its last object: see
// runtime/heapdump.go.
const (
	dumpObject = 1
	dumpType   = 3
	dumpParams = 6
	dumpItab   = 8

	dumpHeader = "go1.7 heap dump\n"
)

// heap lists the objects of the heap: what the runtime can tell about it is in
// a heap dump only.
func heap() objects {
	f, err := os.CreateTemp("", "heap")
	if err != nil {
		panic(err)
	}
	defer os.Remove(f.Name())
	defer f.Close()
	runtime.GC() // garbage would be dumped too
	debug.WriteHeapDump(f.Fd())
	d := dump{r: bufio.NewReaderSize(io.NewSectionReader(f, 0, math.MaxInt64), 1<<16)}
	all := d.objects()
	if d.err == nil && len(all) == 0 {
		d.err = errors.New("no objects")
	}
	if d.err != nil {
		panic("mc: heap dump: " + d.err.Error())
	}
	slices.SortFunc(all, func(a, b object) int { return cmp.Compare(a.base, b.base) })
	return all
}

// dump reads a heap dump up to its first error.
type dump struct {
	r   *bufio.Reader
	err error
}

func (d *dump) objects() (all objects) {
	header := make([]byte, len(dumpHeader))
	if _, d.err = io.ReadFull(d.r, header); d.err == nil && string(header) != dumpHeader {
		d.err = fmt.Errorf("header %q", header)
	}
	for d.err == nil {
		switch tag := d.number(); tag {
		case dumpObject:
			o := object{base: uintptr(d.number())}
			o.size = uintptr(d.skip())
			for d.number() != 0 { // a pointer
				d.number() // its offset
			}
			all = append(all, o)
		case dumpType:
			d.number() // address
			d.number() // size
			d.skip()   // name
			d.number() // indirect?
		case dumpParams:
			d.number() // byte order
			d.number() // pointer size
			d.number() // start of the heap
			d.number() // end
			d.skip()   // architecture
			d.skip()   // version of Go
			d.number() // processors
		case dumpItab:
			d.number() // address
			d.number() // type
		default: // goroutines and more
			return all
		}
	}
	return nil
}

func (d *dump) number() (n uint64) {
	if d.err == nil {
		n, d.err = binary.ReadUvarint(d.r)
	}
	return n
}

// skip skips a string and returns its length.
func (d *dump) skip() (n uint64) {
	if n = d.number(); d.err == nil {
		_, d.err = d.r.Discard(int(n))
	}
	return n
}
