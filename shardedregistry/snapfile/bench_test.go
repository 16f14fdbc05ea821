package snapfile_test

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"testing"

	"github.com/latchfree/latchfree/shardedregistry"
	"github.com/latchfree/latchfree/shardedregistry/snapfile"
)

// BenchmarkSnapfile writes and reads 100,000 entries of about 40 bytes.
func BenchmarkSnapfile(b *testing.B) {
	const keys = 100_000
	r := new(shardedregistry.Registry[string, string])
	for i := range keys {
		r.Put(fmt.Sprintf("tenant-%d/plan-%06d", i%10, i), "active, 3 steps")
	}
	for name, f := range map[string]snapfile.Format[string, string]{
		"String": {Keys: snapfile.String[string]{}, Values: snapfile.String[string]{}},
		"JSON":   {},
	} {
		var file bytes.Buffer
		if err := snapfile.Write(&file, r, f); err != nil {
			b.Fatal(err)
		}
		b.Run("op=Write/codec="+name, func(b *testing.B) {
			b.SetBytes(int64(file.Len()))
			for b.Loop() {
				if err := snapfile.Write(io.Discard, r, f); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("op=Save/codec="+name, func(b *testing.B) {
			b.SetBytes(int64(file.Len()))
			path := filepath.Join(b.TempDir(), "a")
			for b.Loop() {
				if err := snapfile.Save(path, r, f); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("op=Read/codec="+name, func(b *testing.B) {
			b.SetBytes(int64(file.Len()))
			for b.Loop() {
				again, err := snapfile.Read(bytes.NewReader(file.Bytes()), shardedregistry.Config[string, string]{}, f)
				if err != nil || again.Len() != keys {
					b.Fatal(again, err)
				}
			}
		})
	}
}
