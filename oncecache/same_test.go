//go:build !modelcheck

package oncecache

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"unsafe"
)

// same calls what sameness returns for the type of its arguments.
func same[V any](a, b V) bool {
	same, _ := sameness[V]()
	return same(a, b)
}

// Two values are one if they are equal, or one is a copy of the other.
func TestSameness(t *testing.T) {
	one, other := new(int), new(int)
	slice, m, ch := []int{1, 2, 3}, map[int]int{1: 1}, make(chan int)
	f, g := func() int { return *one }, func() int { return *other + 1 }
	of := func(p *int) func() int { return func() int { return *p } }
	type owner struct {
		f func() int
		s []int
		v any
	}
	owned := owner{f, slice, slice}
	reader := strings.NewReader("a")
	type pair struct {
		p *int
		s string
	}
	type holder struct{ v any }
	for name, tt := range map[string]struct{ got, want bool }{
		"a pointer":                        {same(one, one), true},
		"pointers to what is equal":        {same(one, other), false},
		"nil pointers":                     {same[*int](nil, nil), true},
		"a pointer and nil":                {same(one, nil), false},
		"numbers":                          {same(7, 7), true},
		"other numbers":                    {same(7, 8), false},
		"strings":                          {same("a", "a"), true},
		"other strings":                    {same("a", "b"), false},
		"floats":                           {same(0.5, 0.5), true},
		"NaN":                              {same(math.NaN(), math.NaN()), true},
		"a channel":                        {same(ch, ch), true},
		"channels":                         {same(ch, make(chan int)), false},
		"a slice":                          {same(slice, slice), true},
		"slices of what is equal":          {same(slice, []int{1, 2, 3}), false},
		"a part of a slice":                {same(slice, slice[:2]), false},
		"another part":                     {same(slice[:2], slice[1:]), false},
		"nil slices":                       {same[[]int](nil, nil), true},
		"a map":                            {same(m, m), true},
		"maps of what is equal":            {same(m, map[int]int{1: 1}), false},
		"a function":                       {same(f, f), true},
		"functions":                        {same(f, g), false},
		"closures of one function":         {same(of(one), of(other)), false},
		"interfaces of closures":           {same[any](of(one), of(other)), false},
		"a struct of what none compares":   {same(owned, owned), true},
		"structs of other slices":          {same(owned, owner{f, slice[:1], slice}), false},
		"an interface of such a struct":    {same[any](owned, owned), true},
		"an array of functions":            {same([1]func() int{f}, [1]func() int{f}), true},
		"an empty struct":                  {same(struct{}{}, struct{}{}), true},
		"a nil function":                   {same(f, nil), false},
		"an interface":                     {same[io.Reader](reader, reader), true},
		"interfaces of other pointers":     {same[io.Reader](reader, strings.NewReader("a")), false},
		"interfaces of other types":        {same[any](7, "7"), false},
		"interfaces of other number types": {same[any](7, int8(7)), false},
		"interfaces of equal numbers":      {same[any](7, 7), true},
		"nil interfaces":                   {same[error](nil, nil), true},
		"an interface and nil":             {same[error](errors.New("e"), nil), false},
		"nil and an interface":             {same[error](nil, errors.New("e")), false},
		"an interface of a slice":          {same[any](slice, slice), true},
		"interfaces of slices":             {same[any](slice, []int{1, 2, 3}), false},
		"an interface of a function":       {same[any](f, f), true},
		"a struct":                         {same(pair{one, "a"}, pair{one, "a"}), true},
		"structs":                          {same(pair{one, "a"}, pair{other, "a"}), false},
		"a struct with an interface":       {same(holder{one}, holder{one}), true},
		"structs with other interfaces":    {same(holder{one}, holder{slice}), false},
		"an array":                         {same([2]int{1, 2}, [2]int{1, 2}), true},
		"arrays":                           {same([2]int{1, 2}, [2]int{1, 3}), false},
		"complex numbers":                  {same(1+2i, 3+2i), false},
		"other imaginary parts":            {same(1+2i, 1+3i), false},
		"a blank field":                    {same(blank(1, 2), blank(3, 2)), true},
		"beside a blank field":             {same(blank(1, 2), blank(1, 3)), false},
	} {
		if tt.got != tt.want {
			t.Errorf("%s: same %t, want %t", name, tt.got, tt.want)
		}
	}
}

// blank returns a struct with a field that is none, and another one.
func blank(no, one int) struct{ _, one int } {
	return *(*struct{ _, one int })(unsafe.Pointer(&[2]int{no, one}))
}

// refers reports what sameness says of a type.
func refers[V any]() bool {
	_, refers := sameness[V]()
	return refers
}

// Of a type that refers to something, two values that are the same cannot have been made apart.
func TestWhatRefersToSomething(t *testing.T) {
	for name, tt := range map[string]struct{ got, want bool }{
		"an int":                {refers[int](), false},
		"a string":              {refers[string](), false},
		"a pointer to a byte":   {refers[*byte](), true},
		"a pointer to nothing":  {refers[*struct{}](), false},
		"a channel":             {refers[chan int](), true},
		"an interface":          {refers[any](), true},
		"an array of a pointer": {refers[[1]*int](), true},
		"an array of none":      {refers[[0]*int](), false},
		"an array of numbers":   {refers[[2]int](), false},
		"a struct with a pointer": {refers[struct {
			n int
			p *int
		}](), true},
		"a struct without one": {refers[struct{ n int }](), false},
	} {
		if tt.got != tt.want {
			t.Errorf("%s: refers %t, want %t", name, tt.got, tt.want)
		}
	}
}

// Values that cannot be compared make nobody panic.
func TestSamenessOfOddValues(t *testing.T) {
	type holder struct{ v any }
	type owner struct {
		_ func()
		s []int
	}
	slice := []int{1}
	for name, f := range map[string]func() bool{
		"a struct with an interface of a slice": func() bool { return same(holder{slice}, holder{[]int{1}}) },
		"a struct with a slice":                 func() bool { return same(owner{s: slice}, owner{s: []int{2}}) },
		"an interface of such a struct":         func() bool { return same[any](owner{s: slice}, owner{s: []int{2}}) },
		"an array of functions":                 func() bool { return same([1]func(){nil}, [1]func(){func() {}}) },
		"a pointer to a struct with a slice":    func() bool { return same(&owner{s: slice}, &owner{s: slice}) },
	} {
		func() {
			defer func() {
				if p := recover(); p != nil {
					t.Error(name, fmt.Sprint(p))
				}
			}()
			if f() {
				t.Errorf("%s: same", name)
			}
		}()
	}
}
