//go:build !modelcheck

package shardedregistry_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/latchfree/latchfree/shardedregistry"
)

// Nothing that holds entities becomes {} without a word.
func TestJSONSaysWhatToDo(t *testing.T) {
	var r shardedregistry.Registry[string, int]
	mustPut(t, &r, "x", 1)
	for _, v := range []any{&r, r.Snapshot(), map[string]any{"inside": &r}} {
		text, err := json.Marshal(v)
		if err == nil || !strings.Contains(err.Error(), "marshal slices.Collect(s.Entries()) or maps.Collect(s.All())") {
			t.Errorf("json.Marshal of a %T = %s, %v", v, text, err)
		}
	}
}

// A snapshot may be printed while others look for keys in it.
func TestPrintSnapshot(t *testing.T) {
	var r shardedregistry.Registry[string, int]
	mustPut(t, &r, "a", 1)
	for range 100 {
		s := r.Snapshot()
		hammer(t, 2, func(i int) {
			if i == 0 {
				s.Get("a")
			} else if got, want := fmt.Sprint(s), "a snapshot of 1 keys"; got != want {
				t.Errorf("a snapshot is printed as %s, want %s", got, want)
			}
		})
	}
}

// A registry prints without its words being looked at.
func TestString(t *testing.T) {
	var r shardedregistry.Registry[string, int]
	mustPut(t, &r, "a", 1)
	if got, want := fmt.Sprint(&r), "a registry of 1 keys"; got != want {
		t.Errorf("it prints as %q, want %q", got, want)
	}
}
