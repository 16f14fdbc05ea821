package snapfile_test

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/latchfree/latchfree/shardedregistry/snapfile"
)

// FuzzRead reads bytes, as they are and with checksums that are right. Nothing panics,
// an error comes without a registry, and what was read is written and read again as it
// was.
func FuzzRead(f *testing.F) {
	text := written(f, three(f), raw)
	f.Add(text)
	f.Add(text[:len(text)-9])
	f.Add(append(bytes.Clone(text), 1))
	f.Add(written(f, new(registry), raw))
	f.Add(slices.Concat(unsummed(text)...))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, text []byte) {
		tryRead(t, text)
		tryRead(t, resummed(text))
	})
}

// resummed makes a file of text, which has no checksums: of its header, and of as many
// entries as its lengths leave.
func resummed(text []byte) []byte {
	if len(text) < 28 {
		return summed(text)
	}
	all, rest := [][]byte{text[:28]}, text[28:]
	for len(rest) >= 16 {
		n := 16 + int(rest[0]) + 256*int(rest[1]) + int(rest[4]) + 256*int(rest[5]) // longer ones are not whole
		n = min(n, len(rest))
		all, rest = append(all, rest[:n]), rest[n:]
	}
	return append(summed(all...), rest...)
}

func tryRead(t *testing.T, text []byte) {
	r, err := snapfile.Read(bytes.NewReader(text), config{}, raw)
	if err != nil {
		corrupt := new(snapfile.CorruptError)
		if r != nil || errors.As(err, &corrupt) && (corrupt.Offset < 0 || corrupt.Offset > int64(len(text))) {
			t.Fatalf("Read = %v, %v", r, err)
		}
		return
	}
	last := r.Snapshot().Last()
	again, err := snapfile.Read(bytes.NewReader(written(t, r, raw)), config{}, raw)
	if err != nil || !slices.Equal(contents(r), contents(again)) || again.Snapshot().Last() != last {
		t.Fatalf("%v, last %d, is read again as %v, last %d, %v", contents(r), last, again, again.Snapshot().Last(), err)
	}
}
