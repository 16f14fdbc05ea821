package natstest

import (
	"os"
	"testing"
)

// Long reports whether the tests may take minutes: CLUSTER_LONG is set.
func Long() bool { return os.Getenv("CLUSTER_LONG") != "" }

// NeedsLong skips a test, because of why, unless Long.
func NeedsLong(t testing.TB, why string) {
	t.Helper()
	if !Long() {
		t.Skipf("%s: CLUSTER_LONG is not set, see make cluster-storm", why)
	}
}
