//go:build !modelcheck

package oncecache_test

import (
	"context"
	"runtime"
	"strings"
	"testing"

	"github.com/latchfree/latchfree/oncecache"
)

// A lease that nobody has any more is reported, one that was released is not.
func TestLeakedLeasesAreReported(t *testing.T) {
	type report struct{ key, stack string }
	reports := make(chan report, 10)
	c := oncecache.MustNew(oncecache.Config[string, int]{
		Close:  func(string, int) error { return nil },
		OnLeak: func(k string, stack []byte) { reports <- report{k, string(stack)} },
	})
	one := func(context.Context, string) (int, error) { return 1, nil }
	for _, k := range []string{"released", "discarded", "leaked"} {
		l, err := c.Acquire(t.Context(), k, one)
		if err != nil {
			t.Fatal(err)
		}
		switch k {
		case "released":
			l.Release()
		case "discarded":
			l.Discard()
		}
	}
	collect(t, func() bool { return len(reports) > 0 })
	got := <-reports
	if got.key != "leaked" || !strings.Contains(got.stack, "TestLeakedLeasesAreReported") {
		t.Errorf("%s, acquired by\n%s", got.key, got.stack)
	}
	for range 10 {
		runtime.GC()
	}
	select {
	case r := <-reports:
		t.Errorf("%s is reported", r.key)
	default:
	}
}
