package table_test

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/latchfree/latchfree/internal/table"
)

// part is a cell of a Lines.
type part struct {
	key string
	n   int
}

// parts is a Lines of parts, whose keys are hashed as it says.
type parts struct {
	table.Lines[string, part]
	hash func(string) uint64
}

// hashes are good and bad ones.
func hashes() map[string]func(string) uint64 {
	keys := table.NewKeys[string]()
	return map[string]func(string) uint64{
		"good":      keys.Hash,
		"constant":  func(string) uint64 { return 7 },
		"low bits":  func(k string) uint64 { return keys.Hash(k) & 0xff }, // one tag
		"high bits": func(k string) uint64 { return keys.Hash(k) &^ 0xff },
	}
}

func newParts(hash func(string) uint64) *parts {
	p := &parts{hash: hash}
	p.Init(p.seeded, 0)
	return p
}

func (p *parts) seeded(k string, _ uint64) uint64 { return p.hash(k) }

func (p *parts) key(k string) table.Hashed[string] {
	return table.Hashed[string]{Hash: p.hash(k), Key: k}
}

func (p *parts) new(k string, n int) *part { return &part{k, n} }

func (p *parts) load(k string) *part { return p.Load(p.key(k)) }

// add adds e unless its key is there, and reports whether it did.
func (p *parts) add(e *part) bool {
	now, loaded := p.LoadOrStore(p.key(e.key), e)
	return !loaded && now == e
}

// remove removes e, and reports whether it was there.
func (p *parts) remove(e *part) bool { return e != nil && p.CompareAndDelete(p.key(e.key), e) }

// Checks L1, L2, L3, L7.

// What one goroutine does is what it does to a map, however keys are hashed.
func TestLinesAreAMap(t *testing.T) {
	for name, hash := range hashes() {
		t.Run(name, func(t *testing.T) {
			p, model := newParts(hash), map[string]*part{}
			rnd := rand.New(rand.NewPCG(1, 2))
			for i := range 8_000 {
				phase := i / 2000 // grows, stays, shrinks, stays
				k := fmt.Sprint(rnd.IntN(400))
				e := p.new(k, i)
				switch what := rnd.IntN(10); {
				case what < 4 && phase < 2 || what == 0:
					if added := p.add(e); added != (model[k] == nil) {
						t.Fatalf("add(%s) = %v", k, added)
					} else if added {
						model[k] = e
					}
				case what < 6 && phase < 2:
					if old := p.Swap(p.key(e.key), e); old != model[k] {
						t.Fatalf("Swap(%s) = %v, want %v", k, old, model[k])
					}
					model[k] = e
				case what == 6 && phase < 2:
					if p.CompareAndSwap(p.key(k), p.new(k, i), e) {
						t.Fatalf("CompareAndSwap(%s) finds another cell", k)
					}
					if now := model[k]; now != nil {
						if !p.CompareAndSwap(p.key(k), now, e) {
							t.Fatalf("CompareAndSwap(%s) does not find it", k)
						}
						model[k] = e
					}
				case what == 7:
					if old := p.LoadAndDelete(p.key(k)); old != model[k] {
						t.Fatalf("LoadAndDelete(%s) = %v, want %v", k, old, model[k])
					}
					delete(model, k)
				case what == 8:
					if now := model[k]; i%2 == 0 {
						p.Remove(p.key(k), now)
					} else if now != nil && !p.remove(now) {
						t.Fatalf("CompareAndDelete(%s) does not find it", k)
					}
					delete(model, k)
				case what == 9:
					if p.remove(e) {
						t.Fatalf("CompareAndDelete(%s) of another cell deletes", k)
					}
					p.Remove(p.key(k), e) // nor does this
				}
				if got := p.load(k); got != model[k] {
					t.Fatalf("Load(%s) = %v, want %v", k, got, model[k])
				}
				if p.Len() != len(model) {
					t.Fatalf("Len = %d, want %d", p.Len(), len(model))
				}
				if i%100 == 0 {
					for k, want := range model {
						if got := p.load(k); got != want {
							t.Fatalf("Load(%s) = %v, want %v", k, got, want)
						}
					}
					wantAll(t, p, model)
					if n := p.Wrong(); n != 0 {
						t.Fatalf("%d of %d cells have a wrong tag or wrong ways", n, p.Len())
					}
				}
			}
		})
	}
}

func wantAll(t *testing.T, p *parts, want map[string]*part) {
	t.Helper()
	n := 0
	for e := range p.All() {
		if n++; want[e.key] != e {
			t.Fatalf("All yields %v, want %v", e, want[e.key])
		}
	}
	if n != len(want) {
		t.Fatalf("All yields %d cells, want %d", n, len(want))
	}
}

// The sums on tags find each slot with the tag, and no other.
func TestTags(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	some := [...]uint64{0, 1 << 40, 2 << 40, 0x7f << 40, 0x7e << 40, 1<<47 | 1<<40, rnd.Uint64(), rnd.Uint64()}
	for range 100_000 {
		var in [5]uint64
		for i := range in {
			in[i] = some[rnd.IntN(len(some))]
		}
		of := some[1+rnd.IntN(len(some)-1)]
		said, are := table.Having(in, of)
		if said&are != are || bits.TrailingZeros64(said) != bits.TrailingZeros64(are) {
			t.Fatalf("of %#x, %#x: having says %#x, want at least %#x and the same first", in, of, said, are)
		}
	}
}

// A key that has no cell does not have the cell nil either.
func TestLinesDeleteNothing(t *testing.T) {
	p := newParts(hashes()["good"])
	if p.CompareAndDelete(p.key("a"), nil) {
		t.Error("deleted")
	}
}

// Keys know whether there are any that cannot be compared, and say which cannot.
func TestKeysThatCannotBeCompared(t *testing.T) {
	plain, dynamic := table.NewKeys[int](), table.NewKeys[any]()
	if plain.Dynamic() || !dynamic.Dynamic() {
		t.Errorf("Dynamic: int %t, any %t", plain.Dynamic(), dynamic.Dynamic())
	}
	hash := dynamic.Hasher("test")
	if hash(1, 0) != dynamic.Hash(1) {
		t.Error("another hash")
	}
	defer func() {
		if p, _ := recover().(string); !strings.HasPrefix(p, "test: key [] of type []int cannot be compared: ") {
			t.Errorf("panic %q", p)
		}
	}()
	hash([]int{}, 0)
}

// Seven bits of the hash make a tag.
func TestTagsTellHashesApart(t *testing.T) {
	for h := range uint64(128) {
		for other := range uint64(128) {
			said, _ := table.Having([5]uint64{4: 1<<63 | h<<40}, 1<<63|other<<40)
			if (said != 0) != (h == other) {
				t.Fatalf("a slot of hash %#x is said to have that of %#x: %t", h<<40, other<<40, said != 0)
			}
		}
	}
}

// A cell begins with a Node of the right type.
func TestLinesOfNoCells(t *testing.T) {
	for name, init := range map[string]func(){
		"no struct":   func() { new(table.Cells[string, int]).Init(nil, 0) },
		"no field":    func() { new(table.Cells[string, struct{}]).Init(nil, 0) },
		"another key": func() { new(table.Cells[int, part]).Init(nil, 0) },
		"a later node": func() {
			new(table.Lines[string, struct {
				n int
				string
			}]).Init(nil, 0)
		},
	} {
		func() {
			defer func() {
				if msg, ok := recover().(string); !ok || !strings.HasPrefix(msg, "table: ") {
					t.Errorf("%s: panic %q", name, msg)
				}
			}()
			init()
			t.Errorf("%s: no panic", name)
		}()
	}
}
