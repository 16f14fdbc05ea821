package snapfile_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/latchfree/latchfree/shardedregistry"
	"github.com/latchfree/latchfree/shardedregistry/snapfile"
)

// full takes some bytes and then nothing.
type full struct{ space int }

func (w *full) Write(b []byte) (int, error) {
	if len(b) > w.space {
		return w.space, errBoom
	}
	w.space -= len(b)
	return len(b), nil
}

// short says that it has written less, and no reason.
type short struct{}

func (short) Write(b []byte) (int, error) { return len(b) / 2, nil }

func TestWriterFails(t *testing.T) {
	r := three(t)
	text := written(t, r, raw)
	for n := range text {
		if err := snapfile.Write(&full{n}, r, raw); !errors.Is(err, errBoom) {
			t.Errorf("Write with room for %d bytes = %v", n, err)
		}
	}
	if err := snapfile.Write(&full{len(text)}, r, raw); err != nil {
		t.Error(err)
	}
	if err := snapfile.Write(short{}, r, raw); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("Write to a writer that writes half = %v", err)
	}
	wantPanic(t, "snapfile: Write called with a nil writer", func() { snapfile.Write(nil, r, raw) })
	wantPanic(t, "snapfile: Write called with a nil registry", func() { snapfile.Write(io.Discard, nil, raw) })
}

// What Load would refuse is no file: Save says so, and the old file stays.
func TestSaveOfVersionsThatAreTooHigh(t *testing.T) {
	const most = shardedregistry.MaxRestored
	none := func(func(entry) bool) {}
	path := filepath.Join(t.TempDir(), "a")
	r, err := shardedregistry.Restore(config{}, most-1, none)
	if err != nil {
		t.Fatal(err)
	}
	if v, err := r.Put("a", 1); v != most || err != nil {
		t.Fatalf("Put = %d, %v", v, err)
	}
	if err := snapfile.Save(path, r, raw); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprint(contents(r))
	r.Delete("a") // is the highest version then, which no entry has
	for range 2 {
		if err := snapfile.Save(path, r, raw); !errors.Is(err, shardedregistry.ErrInvalidVersion) {
			t.Errorf("Save of version 2^60 = %v", err)
		}
		var b bytes.Buffer
		if err := snapfile.Write(&b, r, raw); !errors.Is(err, shardedregistry.ErrInvalidVersion) || b.Len() > 0 {
			t.Errorf("Write of version 2^60 = %v, after %d bytes", err, b.Len())
		}
		if again, err := snapfile.Load(path, config{}, raw); err != nil || fmt.Sprint(contents(again)) != want {
			t.Errorf("Load = %v, %v", again, err)
		}
		r.Put("a", 2)
	}
}

// codec does what its fields say, or else what String does.
type codec struct {
	append func(dst []byte, k string) ([]byte, error)
	decode func(src []byte) (string, error)
}

func (c codec) Append(dst []byte, k string) ([]byte, error) {
	if c.append != nil {
		return c.append(dst, k)
	}
	return append(dst, k...), nil
}

func (c codec) Decode(src []byte) (string, error) {
	if c.decode != nil {
		return c.decode(src)
	}
	return string(src), nil
}

// A key that the file would not have is an error when the file is written, and not
// when it is needed.
func TestWriteReadsKeysBack(t *testing.T) {
	var r registry
	r.Put("a\xff", 1)
	err := snapfile.Write(io.Discard, &r, format{})
	if err == nil || !strings.Contains(err.Error(), "the codec makes a\uFFFD of it") {
		t.Errorf("Write of a key that is not UTF-8, as JSON = %v", err)
	}
	for what, c := range map[string]codec{
		"encoding the key: boom": {append: func([]byte, string) ([]byte, error) { return nil, errBoom }},
		"decoding the key: boom": {decode: func([]byte) (string, error) { return "", errBoom }},
		"the codec makes b of":   {decode: func([]byte) (string, error) { return "b", nil }},
		"the codec makes  of it": {append: func(dst []byte, k string) ([]byte, error) { return nil, nil }},
	} {
		if err := snapfile.Write(io.Discard, &r, format{Keys: c}); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("Write = %v, want %q", err, what)
		}
	}
	for key, value := range map[uint64]uint64{0: 1<<30 + 1, 1<<30 + 1: 0, 1 << 32: 1 << 32} {
		if err := snapfile.CheckLengths(key, value); err == nil {
			t.Errorf("a key of %d and a value of %d bytes may be written", key, value)
		}
	}
	if err := snapfile.CheckLengths(1<<30, 1<<30); err != nil {
		t.Error(err)
	}
	var numbers shardedregistry.Registry[string, float64]
	numbers.Put("a", math.NaN())
	if err := snapfile.Write(io.Discard, &numbers, snapfile.Format[string, float64]{}); err == nil || !strings.Contains(err.Error(), "key a: encoding the value") {
		t.Errorf("Write of what is no JSON = %v", err)
	}
}

// A codec may keep what it is given, and return what it likes.
func TestCodecsThatKeep(t *testing.T) {
	var r shardedregistry.Registry[string, []byte]
	for _, k := range []string{"ann", "bob", "eve"} {
		r.Put(k, []byte(k+k))
	}
	f := snapfile.Format[string, []byte]{Keys: snapfile.String[string]{}, Values: keeps{new(int)}}
	var b bytes.Buffer
	if err := snapfile.Write(&b, &r, f); err != nil {
		t.Fatal(err)
	}
	for k, v := range r.All() {
		if string(v) != k+k {
			t.Errorf("Write has changed %s to %s", k, v)
		}
	}
	again, err := snapfile.Read(&b, shardedregistry.Config[string, []byte]{}, f)
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range again.All() {
		if string(v) != k+k {
			t.Errorf("%s holds %s", k, v)
		}
		again.Put(k, append(v, "overwrites what follows, if there is room"...))
	}
	for k, v := range again.All() {
		if !strings.HasPrefix(string(v), k+k+"over") {
			t.Errorf("%s holds %s", k, v)
		}
	}
}

// Write asks the codec of keys to decode what it has encoded, and leaves it what that was given.
func TestWriteLeavesTheCodecWhatItDecodes(t *testing.T) {
	var r registry
	for i, k := range []string{"ann", "bob", "eve"} {
		r.Put(k, i)
	}
	kept := map[string][]byte{}
	keys := codec{decode: func(src []byte) (string, error) {
		kept[string(src)] = src
		return string(src), nil
	}}
	if err := snapfile.Write(io.Discard, &r, format{Keys: keys}); err != nil {
		t.Fatal(err)
	}
	for k, src := range kept {
		if string(src) != k {
			t.Errorf("what was decoded as %s has become %s", k, src)
		}
	}
	if len(kept) != 3 {
		t.Errorf("%d of 3 keys were decoded", len(kept))
	}
}

// keeps returns each other value itself, and not a copy.
type keeps struct{ calls *int }

func (k keeps) Append(dst []byte, v []byte) ([]byte, error) {
	if *k.calls++; *k.calls%2 == 0 {
		return append(dst, v...), nil
	}
	return v, nil
}

func (keeps) Decode(src []byte) (v []byte, err error) { return src, nil }

// What is saved is one instant: of two keys that change one after the other, the
// second is never ahead.
func TestWriteIsAtomic(t *testing.T) {
	var r registry
	r.Put("first", 0)
	r.Put("second", 0)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for i := 1; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			r.Put("first", i)
			r.Put("second", i)
		}
	}()
	for range 300 {
		again, err := snapfile.Read(bytes.NewReader(written(t, &r, raw)), config{}, raw)
		if err != nil {
			t.Fatal(err)
		}
		first, _ := again.Get("first")
		second, _ := again.Get("second")
		if first-second != 0 && first-second != 1 {
			t.Fatalf("the first is %d and the second %d", first, second)
		}
	}
	close(stop)
	<-stopped
}
