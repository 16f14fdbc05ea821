//go:build !modelcheck

package shardedregistry_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/shardedregistry"
)

// T26: odd numbers of shards.
func TestShards(t *testing.T) {
	for n, want := range map[int]int{1: 1, 2: 2, 3: 4, 4: 4, 5: 8, 255: 256, 1000: 1024, 65_535: 65_536, 65_536: 65_536} {
		r, err := shardedregistry.New(shardedregistry.Config[string, int]{Shards: n})
		if err != nil {
			t.Fatal(err)
		}
		if got := shardedregistry.Shards(r); got != want {
			t.Errorf("Shards: %d gives %d shards, want %d", n, got, want)
		}
		for i := range 50 {
			mustPut(t, r, key(i), i)
			wantValue(t, r, key(i), i)
		}
	}
	for procs, want := range map[int]int{1: 8, 2: 8, 3: 16, 8: 32, 64: 256, 1000: 256} {
		if got := shardedregistry.DefaultShards(procs); got != want {
			t.Errorf("the default for %d processors is %d shards, want %d", procs, got, want)
		}
	}
}

func TestInvalidShards(t *testing.T) {
	for n, value := range map[int]string{-1: "-1", -1 << 31: "-2147483648", 65_537: "65537", 1<<31 - 1: "2147483647"} {
		config := shardedregistry.Config[string, int]{Shards: n}
		r, err := shardedregistry.New(config)
		if r != nil || err == nil || !strings.Contains(err.Error(), "Config.Shards "+value+":") {
			t.Errorf("New with %d shards = %v, %v; want an error that names field and value", n, r, err)
		}
		wantPanic(t, "Config.Shards "+value+":", func() { shardedregistry.MustNew(config) })
	}
}

// wantPanic fails the test unless f panics with a message of this package that
// contains text.
func wantPanic(t testing.TB, text string, f func()) {
	t.Helper()
	defer func() {
		t.Helper()
		p := recover()
		var message string
		switch p := p.(type) {
		case string:
			message = p
		case error:
			message = p.Error()
		}
		if !strings.HasPrefix(message, "shardedregistry: ") || !strings.Contains(message, text) {
			t.Errorf("panic %v, want one of this package that says %q", p, text)
		}
	}()
	f()
}

// T8: go vet reports copies of a registry.
func TestNoCopy(t *testing.T) {
	first := reflect.TypeFor[shardedregistry.Registry[string, int]]().Field(0)
	if first.Type != reflect.TypeFor[atomics.NoCopy]() {
		t.Errorf("the first field is a %v", first.Type)
	}
}
