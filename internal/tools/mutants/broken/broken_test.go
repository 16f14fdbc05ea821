package broken

import (
	"context"
	"testing"

	"github.com/latchfree/latchfree/internal/atomics"
	tables "github.com/latchfree/latchfree/internal/table"
)

// Alone, what is torn does what is whole; what is forced, skipped or failed
// does what its name says.
func TestWords(t *testing.T) {
	for name, tt := range map[string]struct {
		do        func(*atomics.Uint64) uint64
		want, now uint64
	}{
		"TornSwap":    {func(w *atomics.Uint64) uint64 { return TornSwap(w, 2) }, 5, 2},
		"SkippedSwap": {func(w *atomics.Uint64) uint64 { return SkippedSwap(w, 2) }, 5, 5},
		"TornAdd":     {func(w *atomics.Uint64) uint64 { return TornAdd(w, 2) }, 7, 7},
		"SkippedAdd":  {func(w *atomics.Uint64) uint64 { return SkippedAdd(w, 2) }, 7, 5},
		"TornAnd":     {func(w *atomics.Uint64) uint64 { return TornAnd(w, 4) }, 5, 4},
		"SkippedAnd":  {func(w *atomics.Uint64) uint64 { return SkippedAnd(w, 4) }, 5, 5},
		"TornOr":      {func(w *atomics.Uint64) uint64 { return TornOr(w, 2) }, 5, 7},
		"SkippedOr":   {func(w *atomics.Uint64) uint64 { return SkippedOr(w, 2) }, 5, 5},
	} {
		var w atomics.Uint64
		w.Store(5)
		if got := tt.do(&w); got != tt.want || w.Load() != tt.now {
			t.Errorf("%s = %d and leaves %d, want %d and %d", name, got, w.Load(), tt.want, tt.now)
		}
	}
}

func TestCompareAndSwap(t *testing.T) {
	for name, tt := range map[string]struct {
		do        func(w *atomics.Uint64, old, new uint64) bool
		hit, miss bool
		then, now uint64
	}{
		"torn":    {func(w *atomics.Uint64, old, new uint64) bool { return TornCompareAndSwap(w, old, new) }, true, false, 2, 5},
		"forced":  {func(w *atomics.Uint64, old, new uint64) bool { return ForcedCompareAndSwap(w, old, new) }, true, true, 2, 2},
		"skipped": {func(w *atomics.Uint64, old, new uint64) bool { return SkippedCompareAndSwap(w, old, new) }, true, true, 5, 5},
		"failed":  {func(w *atomics.Uint64, old, new uint64) bool { return FailedCompareAndSwap(w, old, new) }, false, false, 5, 5},
	} {
		var w atomics.Uint64
		w.Store(5)
		if tt.do(&w, 4, 2) != tt.miss || w.Load() != tt.now {
			t.Errorf("%s from another value leaves %d, want %d", name, w.Load(), tt.now)
		}
		w.Store(5)
		if tt.do(&w, 5, 2) != tt.hit || w.Load() != tt.then {
			t.Errorf("%s leaves %d, want %d", name, w.Load(), tt.then)
		}
	}
	var p atomics.Pointer[int]
	if !TornCompareAndSwap(&p, nil, new(int)) || p.Load() == nil {
		t.Error("a pointer was not swapped")
	}
}

func TestInstall(t *testing.T) {
	for name, tt := range map[string]struct {
		do     func(*atomics.Pointer[int], *int) *int
		second bool // whether that of the second goes in
	}{
		"torn":   {TornInstall[int], false},
		"forced": {ForcedInstall[int], true},
	} {
		var p atomics.Pointer[int]
		first, second := new(int), new(int)
		if tt.do(&p, first) != first || p.Load() != first {
			t.Errorf("%s: the first was not installed", name)
		}
		if (tt.do(&p, second) == second) != tt.second || (p.Load() == second) != tt.second {
			t.Errorf("%s: in place of another it is %v that the second was installed", name, !tt.second)
		}
	}
}

func TestWaits(t *testing.T) {
	var mu atomics.Mutex
	if FailedTryLock(&mu) || !mu.TryLock() {
		t.Error("a mutex was locked, or is")
	}
	ended, cancel := atomics.WithCancel(context.Background())
	cancel()
	e := atomics.MakeEvent()
	if err := SkippedWaitContext(&e, ended); err != nil {
		t.Error(err)
	}
	if c := Detached(ended); c.Err() != nil || c.Done() != nil {
		t.Error("a context that never ends has ended, or will")
	}
}

func TestTables(t *testing.T) {
	type cells = *tables.Table[string, int]
	a, b := new(int), new(int)
	for name, tt := range map[string]struct {
		do    func(cells)
		x, no *int // what is then stored for a key that had a, and for one that had none
	}{
		"TornTableLoadOrStore":         {func(t cells) { TornTableLoadOrStore(t, "x", b); TornTableLoadOrStore(t, "no", b) }, a, b},
		"ForcedTableLoadOrStore":       {func(t cells) { ForcedTableLoadOrStore(t, "x", b); ForcedTableLoadOrStore(t, "no", b) }, b, b},
		"SkippedTableLoadOrStore":      {func(t cells) { SkippedTableLoadOrStore(t, "x", b); SkippedTableLoadOrStore(t, "no", b) }, a, nil},
		"TornTableSwap":                {func(t cells) { TornTableSwap(t, "x", b); TornTableSwap(t, "no", b) }, b, b},
		"SkippedTableSwap":             {func(t cells) { SkippedTableSwap(t, "x", b); SkippedTableSwap(t, "no", b) }, a, nil},
		"TornTableLoadAndDelete":       {func(t cells) { TornTableLoadAndDelete(t, "x"); TornTableLoadAndDelete(t, "no") }, nil, nil},
		"SkippedTableLoadAndDelete":    {func(t cells) { SkippedTableLoadAndDelete(t, "x") }, a, nil},
		"TornTableCompareAndSwap":      {func(t cells) { TornTableCompareAndSwap(t, "x", a, b); TornTableCompareAndSwap(t, "no", a, b) }, b, nil},
		"ForcedTableCompareAndSwap":    {func(t cells) { ForcedTableCompareAndSwap(t, "x", b, b); ForcedTableCompareAndSwap(t, "no", a, b) }, b, b},
		"SkippedTableCompareAndSwap":   {func(t cells) { SkippedTableCompareAndSwap(t, "x", a, b) }, a, nil},
		"FailedTableCompareAndSwap":    {func(t cells) { FailedTableCompareAndSwap(t, "x", a, b) }, a, nil},
		"TornTableCompareAndDelete":    {func(t cells) { TornTableCompareAndDelete(t, "x", a); TornTableCompareAndDelete(t, "no", a) }, nil, nil},
		"ForcedTableCompareAndDelete":  {func(t cells) { ForcedTableCompareAndDelete(t, "x", b) }, nil, nil},
		"SkippedTableCompareAndDelete": {func(t cells) { SkippedTableCompareAndDelete(t, "x", a) }, a, nil},
		"FailedTableCompareAndDelete":  {func(t cells) { FailedTableCompareAndDelete(t, "x", a) }, a, nil},
		"TornTableRemove":              {func(t cells) { TornTableRemove(t, "x", a); TornTableRemove(t, "no", a) }, nil, nil},
		"TornTableRemove of another":   {func(t cells) { TornTableRemove(t, "x", b) }, a, nil},
		"ForcedTableRemove":            {func(t cells) { ForcedTableRemove(t, "x", b) }, nil, nil},
		"TornTableCompute": {func(t cells) {
			TornTableCompute(t, "x", func(*int) *int { return nil })
			TornTableCompute(t, "no", func(*int) *int { return b })
		}, nil, b},
		"SkippedTableCompute": {func(t cells) { SkippedTableCompute(t, "x", func(*int) *int { return b }) }, a, nil},
	} {
		keys := tables.NewKeys[string]()
		m := tables.New[string, int](keys.Hasher("broken"), 0)
		m.Swap("x", a)
		tt.do(m)
		if m.Load("x") != tt.x || m.Load("no") != tt.no {
			t.Errorf("%s leaves the wrong pointers", name)
		}
	}
}

// plainMap is what these functions see of an xsync.MapOf.
type plainMap map[string]int

func (m plainMap) Load(k string) (int, bool) { v, ok := m[k]; return v, ok }
func (m plainMap) Store(k string, v int)     { m[k] = v }
func (m plainMap) Delete(k string)           { delete(m, k) }

func TestMaps(t *testing.T) {
	toggle := func(_ int, there bool) (int, bool) { return 3, there }
	for name, tt := range map[string]struct {
		do    func(plainMap, string)
		x, no int // 0: absent
	}{
		"TornMapLoadOrStore":      {func(m plainMap, k string) { TornMapLoadOrStore(m, k, 2) }, 1, 2},
		"SkippedMapLoadOrStore":   {func(m plainMap, k string) { SkippedMapLoadOrStore(m, k, 2) }, 1, 0},
		"TornMapLoadAndStore":     {func(m plainMap, k string) { TornMapLoadAndStore(m, k, 2) }, 2, 2},
		"SkippedMapLoadAndStore":  {func(m plainMap, k string) { SkippedMapLoadAndStore(m, k, 2) }, 1, 0},
		"TornMapLoadAndDelete":    {func(m plainMap, k string) { TornMapLoadAndDelete(m, k) }, 0, 0},
		"SkippedMapLoadAndDelete": {func(m plainMap, k string) { SkippedMapLoadAndDelete(m, k) }, 1, 0},
		"TornMapCompute":          {func(m plainMap, k string) { TornMapCompute(m, k, toggle) }, 0, 3},
		"SkippedMapCompute":       {func(m plainMap, k string) { SkippedMapCompute(m, k, toggle) }, 1, 0},
	} {
		m := plainMap{"x": 1}
		tt.do(m, "x")
		tt.do(m, "no")
		if m["x"] != tt.x || m["no"] != tt.no {
			t.Errorf("%s leaves %v", name, m)
		}
	}
}
