package snapfile_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"slices"
	"strings"
	"testing"

	"github.com/latchfree/latchfree/shardedregistry"
	"github.com/latchfree/latchfree/shardedregistry/snapfile"
)

type (
	registry = shardedregistry.Registry[string, int]
	config   = shardedregistry.Config[string, int]
	entry    = shardedregistry.Entry[string, int]
	format   = snapfile.Format[string, int]
)

var (
	errBoom = errors.New("boom")
	raw     = format{Keys: snapfile.String[string]{}}
)

// written returns what Write writes of r.
func written(t testing.TB, r *registry, f format) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := snapfile.Write(&b, r, f); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// three returns a registry of three keys and of one that is gone, with versions 1 to 3.
func three(t testing.TB) *registry {
	t.Helper()
	var r registry
	for i, k := range []string{"ann", "bob", "eve"} {
		for v := range i + 1 {
			if _, err := r.Put(k, 10*i+v); err != nil {
				t.Fatal(err)
			}
		}
	}
	r.Put("gone", 1)
	r.Delete("gone")
	return &r
}

// contents returns the entries of r by their keys.
func contents(r *registry) []entry {
	return slices.SortedFunc(r.Entries(), func(x, y entry) int { return strings.Compare(x.Key, y.Key) })
}

// parts returns where the header and the entries of a file begin, and its end.
func parts(text []byte) (offsets []int) {
	offsets = []int{0}
	for at := 32; at < len(text); {
		offsets = append(offsets, at)
		at += 16 + int(binary.LittleEndian.Uint32(text[at:])) + int(binary.LittleEndian.Uint32(text[at+4:])) + 4
	}
	return append(offsets, len(text))
}

// summed returns parts, which are without checksums, as a file.
func summed(parts ...[]byte) (text []byte) {
	sum := uint32(0)
	for _, p := range parts {
		sum = crc32.Update(sum, crc32.MakeTable(crc32.Castagnoli), p)
		text = binary.LittleEndian.AppendUint32(append(text, p...), sum)
	}
	return text
}

// unsummed is the reverse of summed.
func unsummed(text []byte) (all [][]byte) {
	offsets := parts(text)
	for i, from := range offsets[:len(offsets)-1] {
		all = append(all, bytes.Clone(text[from:offsets[i+1]-4]))
	}
	return all
}

// wantCorrupt fails the test unless text is refused at an offset.
func wantCorrupt(t testing.TB, what string, text []byte, offset int, reason string) {
	t.Helper()
	r, err := snapfile.Read(bytes.NewReader(text), config{}, raw)
	var corrupt *snapfile.CorruptError
	if r != nil || !errors.As(err, &corrupt) || corrupt.Offset != int64(offset) || !strings.Contains(corrupt.Reason, reason) || corrupt.File != "" {
		t.Errorf("%s: Read = %v, %v; want a CorruptError at byte %d that says %q", what, r, err, offset, reason)
	}
}
