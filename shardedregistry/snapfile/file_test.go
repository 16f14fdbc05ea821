package snapfile_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/latchfree/latchfree/shardedregistry/snapfile"
)

// names returns what is in a directory.
func names(t testing.TB, dir string) (all []string) {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		all = append(all, f.Name())
	}
	return all
}

func TestSaveAndLoad(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "plans.snap")
	if r, err := snapfile.Load(path, config{}, raw); r != nil || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Load of no file = %v, %v", r, err)
	}
	r := three(t)
	for i := range 3 {
		r.Put("new", i)
		if err := snapfile.Save(path, r, raw); err != nil {
			t.Fatal(err)
		}
		again, err := snapfile.Load(path, config{}, raw)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := fmt.Sprint(contents(again)), fmt.Sprint(contents(r)); got != want {
			t.Errorf("loaded are %s, want %s", got, want)
		}
		r = again
	}
	if all := names(t, dir); fmt.Sprint(all) != "[plans.snap]" {
		t.Errorf("Save leaves %v", all)
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if err := snapfile.Save(path, r, raw); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o640 {
		t.Errorf("the new file has mode %v, %v", info.Mode(), err)
	}
	if err := os.Truncate(path, 40); err != nil {
		t.Fatal(err)
	}
	_, err := snapfile.Load(path, config{}, raw)
	if corrupt := new(snapfile.CorruptError); !errors.As(err, &corrupt) || corrupt.File != path || corrupt.Offset != 32 || !strings.Contains(err.Error(), "corrupt at byte 32 of "+path+": the file ends at byte 40") {
		t.Errorf("Load of a file that is cut off = %v", err)
	}
}

// Where nothing can be saved, nothing has changed.
func TestSaveFails(t *testing.T) {
	dir := t.TempDir()
	r := three(t)
	if err := snapfile.Save(filepath.Join(dir, "missing", "a"), r, raw); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Save to a directory that is not there = %v", err)
	}
	if err := snapfile.Save(dir, r, raw); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("Save to a directory = %v", err)
	}
	path := filepath.Join(dir, "a")
	if err := snapfile.Save(path, r, raw); err != nil {
		t.Fatal(err)
	}
	r.Put("ann", 99)
	for how, fail := range map[string]func(){
		"panic":  func() { panic(errBoom) },
		"Goexit": runtime.Goexit,
		"error":  func() {},
	} {
		done := make(chan any)
		go func() {
			defer close(done)
			defer func() {
				if p := recover(); p != nil {
					done <- p
				}
			}()
			c := codec{append: func(dst []byte, k string) ([]byte, error) { fail(); return nil, errBoom }}
			if err := snapfile.Save(path, r, format{Keys: c}); !errors.Is(err, errBoom) {
				t.Errorf("Save with a codec that fails = %v", err)
			}
		}()
		if p := <-done; how == "panic" && p != errBoom {
			t.Errorf("the panic became %v", p)
		}
		if again, err := snapfile.Load(path, config{}, raw); err != nil {
			t.Errorf("%s: Load = %v", how, err)
		} else if v, _ := again.Get("ann"); v != 0 {
			t.Errorf("%s: a part of it was saved", how)
		}
		if all := names(t, dir); fmt.Sprint(all) != "[a]" {
			t.Errorf("%s: Save leaves %v", how, all)
		}
	}
	wantPanic(t, "snapfile: Save called with a nil registry", func() { snapfile.Save(path, nil, raw) })
}

// Save and Load agree on what file a path names.
func TestPaths(t *testing.T) {
	if runtime.GOOS == "windows" || runtime.GOOS == "js" {
		t.Skip("there .. is cleaned away before links are followed")
	}
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "far", "away"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join("far", "away"), filepath.Join(dir, "link")); err != nil {
		t.Skip(err)
	}
	t.Chdir(dir)
	r := three(t)
	for _, path := range []string{
		"a", "./b", "far//c", "far/../d", filepath.Join(dir, "e"),
		"link/../f",                      // is far/f
		"far/", "far/.", "link/", "new/", // can be no file
	} {
		err := snapfile.Save(path, r, raw)
		if named := !strings.HasSuffix(path, "/") && !strings.HasSuffix(path, "."); named != (err == nil) {
			t.Errorf("Save to %s = %v", path, err)
		}
		if err != nil {
			continue
		}
		if _, err := snapfile.Load(path, config{}, raw); err != nil {
			t.Errorf("Load of %s after Save = %v", path, err)
		}
	}
	if all := fmt.Sprint(names(t, "."), names(t, "far"), names(t, "link")); all != "[a b d e far link] [away c f] []" {
		t.Errorf("there are %s", all)
	}
}

// Each name that a file may have will do, and so will new ones beside it.
func TestSaveLongNames(t *testing.T) {
	dir, r := t.TempDir(), three(t)
	for _, name := range []string{strings.Repeat("n", 240), strings.Repeat("n", 241), strings.Repeat("n", 255), "x" + strings.Repeat("ö", 127)} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Skip(err) // not here
		}
		if err := snapfile.Save(path, r, raw); err != nil {
			t.Errorf("Save to a name of %d bytes = %v", len(name), err)
		}
		if _, err := snapfile.Load(path, config{}, raw); err != nil {
			t.Error(err)
		}
		if part := snapfile.Stem(name); !utf8.ValidString(part) || !strings.HasPrefix(name, part) || len(part) < 99 || len(part) > 100 {
			t.Errorf("a new file's name begins with %q", part)
		}
	}
	if all := names(t, dir); len(all) != 4 {
		t.Errorf("they leave %q", all)
	}
}

// A link is replaced, wherever it leads, and what it leads to stays.
func TestSaveReplacesLinks(t *testing.T) {
	dir, r := t.TempDir(), three(t)
	in := func(name string) string { return filepath.Join(dir, name) }
	if err := os.Mkdir(in("folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(in("file"), []byte("stays"), 0o640); err != nil {
		t.Fatal(err)
	}
	for _, to := range []string{"folder", "file", "nothing"} {
		link := in("to " + to)
		if err := os.Symlink(to, link); err != nil {
			t.Skip(err)
		}
		if err := snapfile.Save(link, r, raw); err != nil {
			t.Errorf("Save to a link to a %s = %v", to, err)
			continue
		}
		mode := fs.FileMode(0o600)
		if to == "file" {
			mode = 0o640
		}
		if info, err := os.Lstat(link); err != nil || runtime.GOOS != "windows" && info.Mode() != mode {
			t.Errorf("the link to a %s has become %v, %v, want %v", to, info.Mode(), err, mode)
		}
		if _, err := snapfile.Load(link, config{}, raw); err != nil {
			t.Error(err)
		}
	}
	if text, err := os.ReadFile(in("file")); string(text) != "stays" || err != nil {
		t.Errorf("the file behind the link has become %q, %v", text, err)
	}
	if all := fmt.Sprint(names(t, dir), names(t, in("folder"))); all != "[file folder to file to folder to nothing] []" {
		t.Errorf("there are %s", all)
	}
}

// Calls that run at once leave one whole file.
func TestSavesAtOnce(t *testing.T) {
	dir := t.TempDir()
	path, r := filepath.Join(dir, "a"), three(t)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i := range 10 {
				r.Put("ann", i)
				if err := snapfile.Save(path, r, raw); err != nil {
					t.Error(err)
				}
				if _, err := snapfile.Load(path, config{}, raw); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if all := names(t, dir); fmt.Sprint(all) != "[a]" {
		t.Errorf("they leave %v", all)
	}
}

// powered is a folder whose machine may lose its power at the next operation. What
// was not synced is then there or not: of a file any first bytes, or zeros in their
// place, and of the names any first changes.
type powered struct {
	files map[string]*poweredFile // as a process sees them
	names []map[string]*poweredFile
	left  int  // operations until the power fails; negative: it does not
	fails bool // an operation fails instead

	open    int // files that were not closed
	held    int // and not released
	strange int // removals of what was not there
}

type poweredFile struct {
	of           *powered
	base         string
	data, synced []byte
}

// step does one operation, unless the power is gone.
func (p *powered) step(do func()) error {
	if p.left == 0 {
		if p.fails {
			p.left = -1
		}
		return errBoom
	}
	p.left--
	do()
	return nil
}

// change does one operation on the names.
func (p *powered) change(do func(names map[string]*poweredFile)) error {
	return p.step(func() {
		do(p.files)
		next := map[string]*poweredFile{}
		for name, f := range p.files {
			next[name] = f
		}
		p.names = append(p.names, next)
	})
}

func (p *powered) Create(becomes string) (snapfile.File, error) {
	f := &poweredFile{of: p, base: becomes + ".1.tmp"}
	return f, p.change(func(names map[string]*poweredFile) { names[f.base] = f; p.open++; p.held++ })
}

func (p *powered) Rename(from, to string) error {
	return p.change(func(names map[string]*poweredFile) { names[to] = names[from]; delete(names, from) })
}

func (p *powered) Remove(name string) error {
	if p.files[name] == nil {
		p.strange++
	}
	return p.change(func(names map[string]*poweredFile) { delete(names, name) })
}

func (p *powered) Sync() error { return p.step(func() { p.names = p.names[len(p.names)-1:] }) }

func (f *poweredFile) Base() string { return f.base }
func (f *poweredFile) Release()     { f.of.held-- }
func (f *poweredFile) Close() error { f.of.open--; return f.of.step(func() {}) }
func (f *poweredFile) Sync() error  { return f.of.step(func() { f.synced = f.data }) }
func (f *poweredFile) Write(b []byte) (n int, err error) {
	err = f.of.step(func() { f.data, n = append(f.data[:len(f.data):len(f.data)], b...), len(b) })
	return n, err
}

// afterwards calls f with each content that the file name may have after a crash.
func (p *powered) afterwards(name string, f func(data []byte)) {
	for _, names := range p.names {
		file := names[name]
		if file == nil {
			f(nil)
			continue
		}
		for n := len(file.synced); n <= len(file.data); n++ {
			f(file.data[:n])
			torn := append([]byte(nil), file.data...)
			clear(torn[n:])
			f(torn)
		}
	}
}

// At whichever operation the power fails, the name is that of the whole old file or
// of the whole new one, and of the new one if SaveOn has returned nil. If an operation
// fails instead, the process sees the same.
func TestPowerLoss(t *testing.T) {
	const was, is = "what was there before", "what is new, in several writes"
	write := func(w io.Writer) error {
		for i := 0; i < len(is); i += 10 {
			if _, err := io.WriteString(w, is[i:min(i+10, len(is))]); err != nil {
				return err
			}
		}
		return nil
	}
	for _, fails := range []bool{false, true} {
		crashes, kept, replaced := 0, 0, 0
		for left := 0; ; left++ {
			old := &poweredFile{base: "a", data: []byte(was), synced: []byte(was)}
			p := &powered{files: map[string]*poweredFile{"a": old}, names: []map[string]*poweredFile{{"a": old}}, left: left, fails: fails}
			err := snapfile.SaveOn(p, "a", write)
			if err != nil && !errors.Is(err, errBoom) {
				t.Fatal(err)
			}
			if now := string(p.files["a"].data); errors.Is(err, snapfile.ErrNotSynced) != (err != nil && now == is) {
				t.Errorf("after %d operations the file is %q, and the error %v", left, now, err)
			}
			crashes++
			p.afterwards("a", func(data []byte) {
				switch {
				case string(data) == was && err != nil:
					kept++
				case string(data) == is:
					replaced++
				default:
					t.Errorf("when %d operations were done, and Save has returned %v, the disk has %q", left, err, data)
				}
			})
			if now := string(p.files["a"].data); now != was && now != is || err == nil && now != is {
				t.Errorf("after %d operations and %v the file is %q", left, err, now)
			}
			if fails && len(p.files) != 1 || p.open != 0 || p.held != 0 || p.strange != 0 {
				t.Errorf("after an error of operation %d, %d files are left, %d are open, %d held, and %d that were not there were removed", left, len(p.files), p.open, p.held, p.strange)
			}
			if err == nil {
				break
			}
		}
		if crashes < 9 || kept == 0 || replaced < 2 {
			t.Errorf("%d crashes, %d have kept the file and %d replaced it", crashes, kept, replaced)
		}
	}
}

// unsynced is a folder that cannot be synced.
type unsynced struct{ snapfile.Folder }

func (unsynced) Sync() error { return errBoom }

// A file that is in place, and perhaps not for good, is there.
func TestSaveNotSynced(t *testing.T) {
	p := &powered{files: map[string]*poweredFile{}, left: -1}
	err := snapfile.SaveOn(unsynced{p}, "a", func(w io.Writer) error { _, err := io.WriteString(w, "all"); return err })
	if !errors.Is(err, snapfile.ErrNotSynced) || !errors.Is(err, errBoom) {
		t.Errorf("Save = %v", err)
	}
	if f := p.files["a"]; f == nil || string(f.data) != "all" || len(p.files) != 1 {
		t.Errorf("the files are %v", p.files)
	}
}
