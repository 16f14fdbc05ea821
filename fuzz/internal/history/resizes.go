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
	if in := v.Type().PkgPath(); in == "sync/atomic" || strings.HasSuffix(in, "/internal/atomics") && strings.HasPrefix(v.Type().Name(), "Pointer[") {
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

// pointer follows an atomic pointer. Only its methods tell the type of what it points to.
func (w *walk) pointer(v reflect.Value) {
	// Safety: v is within what some pointer points to. By its method it is loaded
	// as all others who may still use it do.
	load := reflect.NewAt(v.Type(), unsafe.Pointer(v.UnsafeAddr())).MethodByName("Load")
	if load.IsValid() && load.Type().Out(0).Kind() == reflect.Pointer {
		w.value(load.Call(nil)[0])
	}
}
