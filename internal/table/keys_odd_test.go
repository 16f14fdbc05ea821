package table_test

import (
	"math"
	"testing"
	"unsafe"

	"github.com/latchfree/latchfree/internal/table"
)

type (
	blank struct {
		a int32
		_ int32
		b string
	}
	padded struct {
		a int8
		b int64
	}
	named    string
	pair     struct{ x, y any }
	ignoring struct {
		a int
		_ any
	}
)

// newBlank returns a blank whose field without a name is n.
func newBlank(n int32) (k blank) {
	k.b = "b"
	// Safety: the second int32 of a blank lies behind the first.
	(*[2]int32)(unsafe.Pointer(&k))[1] = n
	return k
}

// newPadded returns a padded whose second byte is n.
func newPadded(n byte) (k padded) {
	k.b = 1
	// Safety: a padded has 16 bytes, or 12, and b begins with the ninth or the fifth.
	(*[2]byte)(unsafe.Pointer(&k))[1] = n
	return k
}

// newIgnoring returns an ignoring whose field without a name is v.
func newIgnoring(v any) (k ignoring) {
	k.a = 1
	// Safety: this struct has the fields of an ignoring.
	(*struct {
		a int
		b any
	})(unsafe.Pointer(&k)).b = v
	return k
}

// odd is what is tried with keys of one type.
type odd func(t *testing.T)

// same tries keys that are equal, each of which is found as the others are.
func same[K comparable](all ...K) odd {
	return func(t *testing.T) {
		keys := table.NewKeys[K]()
		for i, k := range all {
			if k != all[0] {
				t.Fatalf("%v != %v", k, all[0])
			}
			if !keys.Comparable(k) || !keys.Findable(k) {
				t.Errorf("the key %d, %v, is not findable", i, k)
			} else if keys.Hash(k) != keys.Hash(all[0]) {
				t.Errorf("the key %d, %v, has another hash than its equal", i, k)
			}
		}
	}
}

// different tries keys that differ, and with them their hashes.
func different[K comparable](all ...K) odd {
	return func(t *testing.T) {
		keys, seen := table.NewKeys[K](), map[uint64]K{}
		for _, k := range all {
			if !keys.Findable(k) {
				t.Errorf("%v is not findable", k)
				continue
			}
			h := keys.Hash(k)
			if other, ok := seen[h]; ok {
				t.Errorf("%v and %v have one hash", k, other)
			}
			seen[h] = k
		}
	}
}

// never tries keys that cannot be found: because they are not comparable, or not
// equal to themselves.
func never[K comparable](isComparable bool, all ...K) odd {
	return func(t *testing.T) {
		keys := table.NewKeys[K]()
		for i, k := range all {
			if keys.Findable(k) || keys.Comparable(k) != isComparable {
				t.Errorf("key %d: Findable is %v and Comparable %v, want false and %v", i, keys.Findable(k), keys.Comparable(k), isComparable)
			}
		}
	}
}

// Keys that are equal have one hash, however they came about, and what == can
// compare can be a key.
func TestOddKeys(t *testing.T) {
	minus := math.Copysign(0, -1)
	nan := math.NaN()
	p, q, c := new(int), new(int), make(chan int)
	slice, aMap, function := any([]int{}), any(map[int]int{}), any(func() {})
	for name, try := range map[string]odd{
		"blank field":               same(newBlank(0), newBlank(1), newBlank(-1)),
		"blank field in any":        same[any](newBlank(0), newBlank(1)),
		"blank field in array":      same([1]blank{newBlank(0)}, [1]blank{newBlank(1)}),
		"blank field of any":        same(newIgnoring(nil), newIgnoring(1), newIgnoring([]int{})),
		"padding":                   same(newPadded(0), newPadded(1)),
		"padding in any":            same[any](newPadded(0), newPadded(1)),
		"negative zero":             same(0, minus),
		"negative zero of 32 bits":  same(0, float32(minus)),
		"negative zero, complex":    same(0, complex(minus, 0), complex(0, minus), complex(minus, minus)),
		"negative zero, complex64":  same(0, complex64(complex(minus, minus))),
		"negative zero in struct":   same(struct{ f float64 }{0}, struct{ f float64 }{minus}),
		"negative zero in array":    same([2]float64{0, 1}, [2]float64{minus, 1}),
		"negative zero in any":      same[any](0.0, minus),
		"negative zero, any struct": same(pair{0.0, 1}, pair{minus, 1}),
		"nil any":                   same[any](nil, nil),
		"nil error":                 same[error](nil, nil),
		"nil any in struct":         same(pair{nil, 1}, pair{nil, 1}),
		"nil any in array":          same([2]any{}, [2]any{}),
		"nil any in any":            same[any](pair{}, pair{}),
		"array of arrays of any":    same([2][1]any{{nil}, {minus}}, [2][1]any{{nil}, {0.0}}),
		"empty":                     same(struct{}{}, struct{}{}),
		"empty array":               same([0]any{}, [0]any{}),
		"pointer":                   same(p, p),
		"nil pointer":               same[*int](nil, nil),
		"pointer in any":            same[any](p, p),
		"pointers in struct":        same(struct{ p, q *int }{p, q}, struct{ p, q *int }{p, q}),
		"unsafe pointer":            same(unsafe.Pointer(p), unsafe.Pointer(p)), // Safety: only compared
		"channel":                   same(c, c),
		"channels in any":           same[any]((<-chan int)(c), (<-chan int)(c)),
		"named string":              same(named("a"), named("a")),
		"named string in any":       same[any](named("a"), named("a")),

		"integers":        different(0, 1, -1, math.MinInt, math.MaxInt),
		"bytes":           different[uint8](0, 1, 255),
		"bools":           different([2]bool{}, [2]bool{true, false}, [2]bool{false, true}, [2]bool{true, true}),
		"floats":          different(0, 1, -1, math.Inf(1), math.Inf(-1), math.SmallestNonzeroFloat64),
		"complex numbers": different(0, 1, 1i, 1+1i),
		"strings":         different("", "a", "b", "ab"),
		"named strings":   different[named]("", "a", "b", "ab"),
		"two strings":     different([2]string{"a", "b"}, [2]string{"ab", ""}, [2]string{"", "ab"}, [2]string{"b", "a"}),
		"fields":          different(padded{1, 2}, padded{2, 1}, padded{}),
		"any of one type": different[any]("", "a", "b", "ab"),
		"any of others":   different[any](0, "a", 1.5),

		"slice":                 never(false, slice),
		"map":                   never(false, aMap),
		"function":              never(false, function),
		"empty array of slices": never[any](false, [0][]int{}),
		"slice in struct":       never(false, pair{1, slice}, pair{slice, 1}),
		"slice in array":        never(false, [2]any{nil, slice}),
		"map in any":            never[any](false, pair{1, aMap}),
		"function in arrays":    never(false, [2][1]any{{nil}, {function}}),
		"NaN":                   never(true, nan, math.Copysign(nan, -1)),
		"NaN in struct":         never(true, struct{ a, b float64 }{1, nan}),
		"NaN in any":            never[any](true, nan, pair{1, nan}, complex(nan, 0)),
	} {
		t.Run(name, try)
	}
}
