//go:build modelcheck || purego

package table_test

import "testing"

// What differs has different hashes where keys are walked through, also where
// the runtime does not look at types and mixes nothing for nil.
func TestWalkedKeys(t *testing.T) {
	for name, try := range map[string]odd{
		"types":        different[any](nil, 1, int8(1), int32(1), int64(1), uint64(1), 1.0, float32(1), "1", named("1"), true, [1]int{1}, struct{ a int }{1}),
		"nil and zero": different(pair{nil, 0}, pair{0, nil}, pair{nil, nil}, pair{0, 0}),
		"any of any":   different[any](pair{nil, 1}, pair{1, nil}, pair{}, [1]any{1}, [2]any{}, nil),
	} {
		t.Run(name, try)
	}
}
