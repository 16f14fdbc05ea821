package snapfile

import "encoding/json"

// Codec encodes and decodes keys or values. Its methods run on the caller's goroutine,
// outside every lock.
type Codec[T any] interface {
	// Append appends the encoding of v to dst, and returns the result.
	Append(dst []byte, v T) ([]byte, error)
	// Decode returns what was encoded as src, which it may keep.
	Decode(src []byte) (T, error)
}

// Format says how keys and values are encoded. Nil stands for [JSON]. A file must be
// read with the codecs with which it was written: it does not say which these were.
type Format[K comparable, V any] struct {
	Keys   Codec[K]
	Values Codec[V]
}

// withDefaults returns f with codecs for nil.
func (f Format[K, V]) withDefaults() Format[K, V] {
	if f.Keys == nil {
		f.Keys = JSON[K]{}
	}
	if f.Values == nil {
		f.Values = JSON[V]{}
	}
	return f
}

// JSON encodes with encoding/json. That loses fields that are not exported, and bytes
// of strings that are not UTF-8: Write returns an error for keys that it would change,
// and does not find values.
type JSON[T any] struct{}

// Append appends v as JSON.
func (JSON[T]) Append(dst []byte, v T) ([]byte, error) {
	text, err := json.Marshal(v)
	return append(dst, text...), err
}

// Decode returns what JSON describes.
func (JSON[T]) Decode(src []byte) (v T, err error) {
	err = json.Unmarshal(src, &v)
	return v, err
}

// String encodes strings as their bytes.
type String[T ~string] struct{}

// Append appends the bytes of s.
func (String[T]) Append(dst []byte, s T) ([]byte, error) { return append(dst, s...), nil }

// Decode returns the string with these bytes.
func (String[T]) Decode(src []byte) (T, error) { return T(src), nil }
