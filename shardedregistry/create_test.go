//go:build !modelcheck

package shardedregistry_test

import (
	"errors"
	"testing"

	"github.com/latchfree/latchfree/shardedregistry"
)

func TestCreateNeverOverwrites(t *testing.T) {
	var r shardedregistry.Registry[string, int]
	version, err := r.Create("a", 1)
	if err != nil || version != 1 {
		t.Fatalf("Create = %d, %v; want 1, nil", version, err)
	}
	_, err = r.Create("a", 2)
	var exists *shardedregistry.ExistsError
	if !errors.Is(err, shardedregistry.ErrExists) || !errors.As(err, &exists) {
		t.Fatalf("second Create = %v, want an ExistsError", err)
	}
	if want := (shardedregistry.ExistsError{Given: "a", Stored: "a", Version: 1}); *exists != want {
		t.Errorf("second Create = %+v, want %+v", *exists, want)
	}
	if want := "shardedregistry: key exists: a at version 1"; err.Error() != want {
		t.Errorf("its text is %q, want %q", err, want)
	}
	wantValue(t, &r, "a", 1)
}
