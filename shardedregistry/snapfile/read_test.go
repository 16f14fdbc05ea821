package snapfile_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/latchfree/latchfree/shardedregistry"
	"github.com/latchfree/latchfree/shardedregistry/snapfile"
)

// What was written is read, with all versions, and keys that were deleted go on above
// those that they had.
func TestReadsWhatItWrote(t *testing.T) {
	r := three(t)
	for range 50 {
		r.Put("gone", 1)
		r.Delete("gone")
	}
	r.Put("\xff\xfe", -1)
	r.Put("", 7)
	r.Put("gone", 1)
	gone, _ := r.Delete("gone")
	for name, reader := range map[string]func(io.Reader) io.Reader{
		"whole":     func(r io.Reader) io.Reader { return r },
		"one byte":  iotest.OneByteReader,
		"half":      iotest.HalfReader,
		"EOF early": iotest.DataErrReader,
	} {
		again, err := snapfile.Read(reader(bytes.NewReader(written(t, r, raw))), config{}, raw)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := contents(again), contents(r); !slices.Equal(got, want) {
			t.Errorf("%s: read %v, want %v", name, got, want)
		}
		if v, _ := again.Put("gone", 2); v <= gone.Version+1 {
			t.Errorf("%s: a deleted key begins at version %d, and had %d", name, v, gone.Version+1)
		}
	}
	again, err := snapfile.Read(bytes.NewReader(written(t, new(registry), format{})), config{}, format{})
	if err != nil || again.Len() != 0 {
		t.Errorf("an empty registry is read as %v, %v", again, err)
	}
}

type plan struct {
	Steps []string
	Owner *string
}

// Any types, with JSON.
func TestRoundTripJSON(t *testing.T) {
	type scoped struct {
		Space string
		Key   int
	}
	var r shardedregistry.Registry[scoped, plan]
	ann := "ann"
	for i := range 1000 {
		r.Put(scoped{Space: fmt.Sprint(i % 7), Key: i}, plan{Steps: []string{strings.Repeat("x", i)}, Owner: &ann})
	}
	var b bytes.Buffer
	f := snapfile.Format[scoped, plan]{}
	if err := snapfile.Write(&b, &r, f); err != nil {
		t.Fatal(err)
	}
	again, err := snapfile.Read(&b, shardedregistry.Config[scoped, plan]{History: 1024}, f)
	if err != nil || again.Len() != 1000 {
		t.Fatalf("Read = %v, %v", again, err)
	}
	for e := range r.Entries() {
		got, ok := again.Lookup(e.Key)
		if !ok || got.Version != e.Version || got.Value.Steps[0] != e.Value.Steps[0] || *got.Value.Owner != ann {
			t.Fatalf("%v is %v, want %v", e.Key, got, e)
		}
	}
}

// A file that is cut off anywhere, or in which any bit is another, is refused at the
// part that is not whole.
func TestEveryByte(t *testing.T) {
	text := written(t, three(t), raw)
	offsets := parts(text)
	part := func(at int) int { return offsets[slices.IndexFunc(offsets, func(o int) bool { return o > at })-1] }
	for at := range text {
		wantCorrupt(t, fmt.Sprint("cut off at ", at), text[:at], part(at), fmt.Sprintf("the file ends at byte %d", at))
		for bit := range 8 {
			bad := bytes.Clone(text)
			bad[at] ^= 1 << bit
			wantCorrupt(t, fmt.Sprintf("bit %d of byte %d", bit, at), bad, part(at), "")
		}
		bad := slices.Delete(bytes.Clone(text), at, at+1)
		if r, err := snapfile.Read(bytes.NewReader(bad), config{}, raw); err == nil {
			t.Errorf("without byte %d Read = %v", at, contents(r))
		}
	}
	wantCorrupt(t, "a byte more", append(bytes.Clone(text), 0), len(text), "something follows")
	wantCorrupt(t, "twice", append(bytes.Clone(text), text...), len(text), "something follows")
}

// Entries that are missing, repeated or out of order are found, though each is whole.
func TestEntriesAreWhole(t *testing.T) {
	text := written(t, three(t), raw)
	o := parts(text)
	at := func(i int) []byte { return text[o[i]:o[i+1]] }
	for what, parts := range map[string][]int{
		"out of order": {0, 2, 1, 3}, "repeated": {0, 1, 1, 2}, "missing": {0, 2, 3}, "the header again": {0, 0, 1, 2},
	} {
		bad := []byte{}
		for _, i := range parts {
			bad = append(bad, at(i)...)
		}
		_, err := snapfile.Read(bytes.NewReader(bad), config{}, raw)
		if corrupt := new(snapfile.CorruptError); !errors.As(err, &corrupt) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// What another program wrote, also with good checksums.
func TestForeign(t *testing.T) {
	whole := unsummed(written(t, three(t), raw))
	header := func(at int, b ...byte) [][]byte {
		changed := slices.Clone(whole)
		changed[0] = bytes.Clone(whole[0])
		copy(changed[0][at:], b)
		return changed
	}
	first := func(at int, b ...byte) [][]byte {
		changed := slices.Clone(whole)
		changed[1] = bytes.Clone(whole[1])
		copy(changed[1][at:], b)
		return changed
	}
	wantCorrupt(t, "empty", nil, 0, "the file ends at byte 0")
	wantCorrupt(t, "JSON", []byte(strings.Repeat(`{"a":1}`, 100)), 0, "no file of this package")
	wantCorrupt(t, "zeros", make([]byte, 1000), 0, "no file of this package")
	wantCorrupt(t, "as text", bytes.ReplaceAll(written(t, three(t), raw), []byte("\r\n"), []byte("\n")), 0, "no file of this package")
	wantCorrupt(t, "another format", summed(header(8, 2)...), 0, "the format is 2, and this package reads 1")
	wantCorrupt(t, "more entries", summed(header(12, 4)...), len(summed(whole...)), "the file ends")
	wantCorrupt(t, "many more entries", summed(header(12, 0, 0, 0, 0, 0, 0, 0, 0x80)...), len(summed(whole...)), "the file ends")
	wantCorrupt(t, "fewer entries", summed(header(12, 2)...), parts(summed(whole...))[3], "something follows")
	wantCorrupt(t, "a long key", summed(first(0, 1, 0, 0, 0x40)...), 32, "at most 1073741824 each")
	wantCorrupt(t, "a long value", summed(first(4, 0, 0, 0, 0x80)...), 32, "at most 1073741824 each")

	for what, text := range map[string][]byte{
		"no version: shardedregistry: a version must be at least 1": summed(first(8, make([]byte, 8)...)...),
		"high: shardedregistry: a version must be below 2^60":       summed(first(8, 0, 0, 0, 0, 0, 0, 0, 0x10)...),
		"last: shardedregistry: a version must be below 2^60":       summed(header(20, 0, 0, 0, 0, 0, 0, 0, 0x10)...),
		"twice: shardedregistry: key exists":                        summed(whole[0], whole[1], whole[1], whole[2]),
	} {
		_, want, _ := strings.Cut(what, ": ")
		r, err := snapfile.Read(bytes.NewReader(text), config{}, raw)
		if r != nil || err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "at byte ") {
			t.Errorf("%s: Read = %v, %v", what, r, err)
		}
		if about := strings.Contains(want, "a version must"); about != errors.Is(err, shardedregistry.ErrInvalidVersion) {
			t.Errorf("%s: whether %v matches ErrInvalidVersion is %v", what, err, !about)
		}
	}
}

// A length is no reason to allocate: what is there is.
func TestLengthsAllocateNothing(t *testing.T) {
	whole := unsummed(written(t, three(t), raw))
	binary.LittleEndian.PutUint32(whole[1], 1<<30)
	binary.LittleEndian.PutUint32(whole[1][4:], 1<<30)
	binary.LittleEndian.PutUint64(whole[0][12:], 1<<62)
	text := summed(whole...)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	wantCorrupt(t, "a gigabyte", text, 32, "the file ends")
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
		t.Errorf("a file of %d bytes made Read allocate %d", len(text), n)
	}
	// A value that is long and there is read in steps.
	var r shardedregistry.Registry[string, string]
	long := strings.Repeat("long", 1<<20)
	r.Put("a", long)
	f := snapfile.Format[string, string]{Values: snapfile.String[string]{}}
	var b bytes.Buffer
	if err := snapfile.Write(&b, &r, f); err != nil {
		t.Fatal(err)
	}
	again, err := snapfile.Read(&b, shardedregistry.Config[string, string]{}, f)
	if err != nil {
		t.Fatal(err)
	}
	if v, _ := again.Get("a"); v != long {
		t.Errorf("a long value has %d bytes, want %d", len(v), len(long))
	}
}

// An error of the reader is no corrupt file.
func TestReaderFails(t *testing.T) {
	text := written(t, three(t), raw)
	for n := range len(text) + 1 {
		src := io.MultiReader(bytes.NewReader(text[:n]), iotest.ErrReader(errBoom))
		r, err := snapfile.Read(src, config{}, raw)
		if r != nil || !errors.Is(err, errBoom) || !strings.Contains(err.Error(), fmt.Sprintf("at byte %d: boom", n)) {
			t.Fatalf("after %d bytes Read = %v, %v", n, r, err)
		}
	}
	if _, err := snapfile.Read(neverReads{}, config{}, raw); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("Read of a reader that does not read = %v", err)
	}
}

type neverReads struct{}

func (neverReads) Read([]byte) (int, error) { return 0, nil }

// The settings of the registry hold for what is read: all of it, or nothing.
func TestReadChecks(t *testing.T) {
	text := written(t, three(t), raw)
	for what, c := range map[string]config{
		"Check":     {Check: func(k string, _ int) error { return map[string]error{"eve": errBoom}[k] }},
		"Normalize": {Normalize: func(k string) (string, error) { return k, map[string]error{"bob": errBoom}[k] }},
	} {
		r, err := snapfile.Read(bytes.NewReader(text), c, raw)
		var failed *shardedregistry.KeyError
		if r != nil || !errors.Is(err, errBoom) || !errors.As(err, &failed) {
			t.Errorf("%s: Read = %v, %v", what, r, err)
		}
	}
	r, err := snapfile.Read(bytes.NewReader(text), config{Shards: -1}, raw)
	if r != nil || err == nil || !strings.Contains(err.Error(), "Config.Shards") {
		t.Errorf("Read with bad settings = %v, %v", r, err)
	}
	_, err = snapfile.Read(bytes.NewReader(text), config{
		UniqueIndexes: map[string]func(string, int) []string{"all": func(string, int) []string { return []string{"x"} }},
	}, raw)
	if !errors.Is(err, shardedregistry.ErrNotUnique) {
		t.Errorf("Read of values that are not unique = %v", err)
	}
	_, err = snapfile.Read(bytes.NewReader(text), config{}, format{})
	if err == nil || !strings.Contains(err.Error(), "the key at byte 32") {
		t.Errorf("Read with another codec = %v", err)
	}
	wantPanic(t, "snapfile: Read called with a nil reader", func() { snapfile.Read(nil, config{}, raw) })
}

func wantPanic(t testing.TB, want string, f func()) {
	t.Helper()
	defer func() {
		t.Helper()
		if p := recover(); fmt.Sprint(p) != want {
			t.Errorf("it panics with %v, want %s", p, want)
		}
	}()
	f()
}

// Deadlines are not saved. A constant TTL gives what is read its whole time, whatever Renew had
// made of it; one that follows from the value is what it was, also if it has passed meanwhile.
func TestDeadlinesOfWhatIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const life = time.Hour
		began := time.Now()
		constant := config{TTL: func(string, int) time.Duration { return life }}
		ending := config{TTL: func(_ string, ends int) time.Duration {
			return time.Until(began.Add(time.Duration(ends) * time.Second))
		}}
		restarted := func(r *registry, c config, down time.Duration) *registry {
			text := written(t, r, raw)
			r.Clear() // so that it has no timers
			time.Sleep(down)
			again, err := snapfile.Read(bytes.NewReader(text), c, raw)
			if err != nil {
				t.Fatal(err)
			}
			return again
		}
		lasts := func(r *registry, key string, version shardedregistry.Version, want time.Duration) {
			t.Helper()
			from := time.Now()
			if _, err := r.Wait(t.Context(), key, version); !errors.Is(err, shardedregistry.ErrNotFound) {
				t.Fatal(err)
			}
			if lasted := time.Since(from); lasted != want {
				t.Errorf("%s has lasted for %v after the restart, want %v", key, lasted, want)
			}
		}

		r := shardedregistry.MustNew(constant)
		version, _ := r.Put("a", 1)
		r.Renew("a", version, 100*life)
		r = restarted(r, constant, 10*life)
		lasts(r, "a", version, life) // neither what Renew gave it, nor what was left of that

		began = time.Now()
		r = shardedregistry.MustNew(ending)
		version, _ = r.Put("a", int(3*life/time.Second))
		r.Renew("a", version, 100*life)
		r.Put("over", int(life/time.Second))
		r = restarted(r, ending, 2*life)
		for _, e := range contents(r) {
			if e.Version != version {
				t.Errorf("%v has another version than before", e)
			}
		}
		if err := r.Renew("a", version, 5*life); err != nil { // an owner goes on
			t.Error(err)
		}
		lasts(r, "over", version, 0)
		lasts(r, "a", version, 5*life)
	})
}

// A version that no file has is given again: a Wait for it sleeps until then, and UpdateIf does not
// tell the two apart. In a registry whose versions begin above those of before, both do.
func TestVersionsThatWereNotSaved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := new(registry)
		r.Put("a", 1)
		text := written(t, r, raw)
		lost := mustPut(t, r, "a", 2)

		r, err := snapfile.Read(bytes.NewReader(text), config{}, raw)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if e, err := r.Wait(ctx, "a", lost-1); err == nil {
			t.Errorf("Wait for the version that was lost returns %v before there is one", e)
		}
		if version := mustPut(t, r, "a", 3); version != lost {
			t.Fatalf("the lost version was %d, the next one is %d", lost, version)
		}

		const run = 1 << 32
		saved := r.Snapshot()
		r, err = shardedregistry.Restore(config{}, saved.Last()+run, func(yield func(entry) bool) {
			for e := range saved.Entries() {
				if e.Version += run; !yield(e) {
					return
				}
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		if e, err := r.Wait(t.Context(), "a", lost); err != nil || e.Version != lost+run {
			t.Errorf("Wait = %v, %v", e, err)
		}
		if _, err := r.UpdateIf("a", lost, 9); !errors.Is(err, shardedregistry.ErrConflict) {
			t.Errorf("UpdateIf with a version of before = %v", err)
		}
		if version := mustPut(t, r, "b", 1); version <= lost+run {
			t.Errorf("a new key begins at %d", version)
		}
	})
}

func mustPut(t *testing.T, r *registry, key string, value int) shardedregistry.Version {
	t.Helper()
	version, err := r.Put(key, value)
	if err != nil {
		t.Fatal(err)
	}
	return version
}
