//go:build !modelcheck

package shardedregistry_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/latchfree/latchfree/shardedregistry"
)

// What Peek returns is one value for all who look until the key changes, and stays as
// it was then.
func TestPeek(t *testing.T) {
	var r shardedregistry.Registry[string, int]
	if p := r.Peek("a"); p != nil {
		t.Errorf("Peek of an empty registry = %v", *p)
	}
	mustPut(t, &r, "a", 1)
	first := r.Peek("a")
	if first == nil || *first != 1 || r.Peek("a") != first || r.Peek("b") != nil {
		t.Errorf("Peek = %v, then %v; of an absent key %v", first, r.Peek("a"), r.Peek("b"))
	}
	mustPut(t, &r, "a", 2)
	if second := r.Peek("a"); *first != 1 || *second != 2 {
		t.Errorf("Peek = %d and, after the key has changed, %d", *first, *second)
	}
	r.Delete("a")
	if p := r.Peek("a"); p != nil || *first != 1 {
		t.Errorf("Peek of a deleted key = %v; the first value is %d", p, *first)
	}
}

func TestPeekNormalizes(t *testing.T) {
	r := shardedregistry.MustNew(shardedregistry.Config[string, int]{Normalize: func(k string) (string, error) {
		if k == "" {
			return "", errors.New("empty")
		}
		return strings.ToLower(k), nil
	}})
	mustPut(t, r, "A", 1)
	if p := r.Peek("a"); p == nil || *p != 1 || r.Peek("A") != p {
		t.Errorf("Peek of two spellings = %v, %v", p, r.Peek("A"))
	}
	if p := r.Peek(""); p != nil {
		t.Errorf("Peek of an invalid key = %v", *p)
	}
}
