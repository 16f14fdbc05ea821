package history

import (
	"reflect"
	"strings"
	"unsafe"
)

// Resizes returns how often the tables within a value, which nobody uses at
// the time, have grown and shrunk. They are xsync's, wherever they hang.
//
// It reads xsync's unexported counters, because a test that means to resize
// tables has to know that it does. Should they be renamed, it returns zeros
// and that test fails.
func Resizes(value any) (grown, shrunk int64) {
	w := walk{seen: map[place]bool{}}
	w.value(reflect.ValueOf(value))
	return w.grown, w.shrunk
}

type walk struct {
	seen          map[place]bool
	grown, shrunk int64
}

type place struct {
	typ  reflect.Type
	addr uintptr
}

func (w *walk) value(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		here := place{v.Type(), v.Pointer()}
		if v.IsNil() || w.seen[here] {
			return
		}
		w.seen[here] = true
		w.value(v.Elem())
	case reflect.Interface:
		if !v.IsNil() {
			w.value(v.Elem())
		}
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().PkgPath() == "sync/atomic" {
			return // thousands of counters
		}
		for i := range v.Len() {
			w.value(v.Index(i))
		}
	case reflect.Struct:
		w.structure(v)
	}
}

func (w *walk) structure(v reflect.Value) {
	if g, s := v.FieldByName("totalGrowths"), v.FieldByName("totalShrinks"); g.IsValid() && s.IsValid() {
		w.grown += g.Int()
		w.shrunk += s.Int()
		return // and what is in the table holds no tables
	}
	if v.Type().PkgPath() == "sync/atomic" {
		w.pointer(v)
		return
	}
	if strings.HasPrefix(v.Type().Name(), "backlog[") {
		return // a cache's, whose goroutines may not have ended when Close returns
	}
	for i := range v.NumField() {
		w.value(v.Field(i))
	}
}

// pointer follows an atomic.Pointer, whose element type only the type of one of
// its fields tells.
func (w *walk) pointer(v reflect.Value) {
	typ := v.Type().Field(0).Type
	if v.FieldByName("v").Kind() != reflect.UnsafePointer || typ.Kind() != reflect.Array || typ.Elem().Kind() != reflect.Pointer {
		return
	}
	// Safety: v is within what some pointer points to. By its method it is loaded
	// as all others who may still use it do.
	all := reflect.NewAt(v.Type(), unsafe.Pointer(v.UnsafeAddr()))
	w.value(all.MethodByName("Load").Call(nil)[0])
}
