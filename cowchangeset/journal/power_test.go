package journal_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/latchfree/latchfree/cowchangeset/journal"
)

// powered is a folder whose machine may lose its power. What was not synced is then
// there or not: of files, each sector by itself and any size between the old and the
// new one; of the folder, the first of the changes since its last fsync, as many as
// it happens.
type powered struct {
	memory
	disk  map[string]*memoryFile
	since []func(map[string]*memoryFile)
	data  map[*memoryFile][]byte // as synced
	long  map[*memoryFile][]byte // as they were before a Truncate that was not synced
	dies  bool                   // what fails may happen all the same
}

func newPowered() *powered {
	return &powered{disk: map[string]*memoryFile{}, data: map[*memoryFile][]byte{}, long: map[*memoryFile][]byte{}}
}

// change notes a change of the folder that was made, or has failed.
func (p *powered) change(err error, change func(map[string]*memoryFile)) error {
	if err == nil || p.dies {
		p.since = append(p.since, change)
	}
	return err
}

func (p *powered) Create(name, like string) (journal.File, error) {
	f, err := p.memory.Create(name, like)
	if err != nil {
		return nil, err
	}
	file := f.(*handle).memoryFile
	p.since = append(p.since, func(files map[string]*memoryFile) { files[name] = file })
	return &poweredFile{f.(*handle), p}, nil
}

func (p *powered) Edit(name string) (journal.File, error) {
	f, err := p.memory.Edit(name)
	if err != nil {
		return nil, err
	}
	return &poweredFile{f.(*handle), p}, nil
}

func (p *powered) Rename(from, to string) error {
	return p.change(p.memory.Rename(from, to), func(files map[string]*memoryFile) {
		files[to] = files[from]
		delete(files, from)
	})
}

func (p *powered) Remove(name string) error {
	return p.change(p.memory.Remove(name), func(files map[string]*memoryFile) { delete(files, name) })
}

func (p *powered) Archive(name string) error { return p.Remove(name) }

func (p *powered) Sync() error {
	if err := p.memory.Sync(); err != nil {
		return err
	}
	p.disk, p.since = maps.Clone(p.files), nil
	return nil
}

func (p *powered) Check(name string, f journal.File, size int64) error {
	return p.memory.Check(name, f.(*poweredFile).handle, size)
}

type poweredFile struct {
	*handle
	of *powered
}

func (f *poweredFile) Sync() error {
	if err := f.handle.Sync(); err != nil {
		return err
	}
	f.of.data[f.memoryFile] = bytes.Clone(f.memoryFile.data)
	delete(f.of.long, f.memoryFile)
	return nil
}

func (f *poweredFile) Truncate(size int64) error {
	if is := f.memoryFile.data; len(is) > len(f.of.long[f.memoryFile]) {
		f.of.long[f.memoryFile] = bytes.Clone(is)
	}
	return f.handle.Truncate(size)
}

// crash returns what is on the disk.
func (p *powered) crash() *memory {
	files := maps.Clone(p.disk)
	if n := len(p.since); n > 0 {
		for _, change := range p.since[:rand.IntN(n+1)] {
			change(files)
		}
	}
	m := &memory{files: map[string]*memoryFile{}}
	for name, f := range files {
		m.files[name] = &memoryFile{of: m, data: p.torn(f)}
	}
	return m
}

func (p *powered) torn(f *memoryFile) []byte {
	const sector = 512
	was, is := p.data[f], f.data
	if long := p.long[f]; long != nil && rand.IntN(3) == 0 {
		is = long
	}
	size := len(was)
	switch {
	case rand.IntN(3) == 0:
		size = len(is)
	case len(is) > size:
		size += rand.IntN(len(is) - size + 1)
	}
	out := make([]byte, size)
	copy(out, was)
	inOrder, reached := rand.IntN(2) == 0, rand.IntN(len(is)/sector+2)
	for i := 0; i < size; i += sector {
		there := rand.IntN(2) == 0
		if inOrder {
			there = i/sector < reached
		}
		if there && i < len(is) {
			copy(out[i:min(i+sector, size)], is[i:])
		}
	}
	return out
}

// Whatever a crash of the machine leaves, while segments begin and go, all that was
// acknowledged is there, or before the place that Open names when it refuses. With
// SyncNever it need not be there; but what is missing is at the end.
func TestPowerLoss(t *testing.T) {
	rounds, refused := 4000, 0
	if testing.Short() {
		rounds = 400
	}
	for round := range rounds {
		p := newPowered()
		o := journal.Options{SegmentSize: int64(400 + rand.IntN(3000)), Sync: journal.SyncPolicy(round % 2)}
		j, err := journal.OpenOn[any](p, o)
		must(t, err)
		stop := 1 + rand.IntN(60) // the operation at which the power fails
		var crashed *memory
		p.fault = func(op string) (int, error) {
			if op == "check" {
				return 0, nil
			}
			if stop--; stop == 0 {
				done := rand.IntN(3000)
				crashed, p.dies = &memory{}, true
				if op == "write" {
					return done, errBoom
				}
				return 0, errBoom
			}
			if stop < 0 {
				return 0, errBoom
			}
			return 0, nil
		}
		done := map[string]int{} // entries that were acknowledged
		finished, first := uint64(0), uint64(1)
		acknowledged := must0(j.Start(background, header{ID: "1", Ordinal: 1}))
		for n := uint64(1); acknowledged; n++ {
			id, next := fmt.Sprint(n), fmt.Sprint(n+1)
			k := rand.IntN(4)
			for i := range k {
				acknowledged = acknowledged && must0(j.Append(background, id, []entry{item(uint64(i), strings.Repeat("v", rand.IntN(900)))}))
				if acknowledged {
					done[id]++
				}
			}
			for _, s := range []step{start(next, n+1, id), seal(id, k, uint64(max(0, k-1))), applied(id, whole)} {
				acknowledged = acknowledged && must0(s.call(j))
			}
			if acknowledged {
				finished = n
			}
			if acknowledged && n%3 == 0 {
				first = n + 1 // also if it is not acknowledged
				acknowledged = must0(j.Prune(background, n+1))
			}
		}
		if crashed == nil {
			t.Fatal("no crash")
		}
		crashed = p.crash()
		again, err := journal.OpenOn[any](crashed, o)
		var corrupt *journal.CorruptError
		if errors.As(err, &corrupt) {
			refused++
			crashed.cutAt(corrupt)
			again, err = journal.OpenOn[any](crashed, o)
		}
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		if o.Sync == journal.SyncNever {
			continue
		}
		got := map[string]int{}
		for _, s := range load(t, again) {
			got[s.ID] = len(s.Entries)
			if s.Ordinal <= finished && s.Applied != whole {
				t.Fatalf("round %d: %s is not applied", round, s.ID)
			}
		}
		for id, n := range done {
			var ordinal uint64
			fmt.Sscan(id, &ordinal)
			if have, ok := got[id]; have < n && (ok || ordinal >= first) {
				t.Fatalf("round %d: %d of %d entries of %s are there; pruned up to %d", round, have, n, id, first)
			}
		}
	}
	t.Logf("%d crashes, %d of them left what Open refuses", rounds, refused)
}

func must0(err error) bool { return err == nil }

// cutAt removes what comes after the place that an error names.
func (m *memory) cutAt(c *journal.CorruptError) {
	for name, f := range m.files {
		if name == c.File {
			f.data = f.data[:c.Offset]
		} else if name > c.File {
			delete(m.files, name)
		}
	}
}
