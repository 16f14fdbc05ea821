package natstest

import (
	"os"
	"testing"
)

// Long reports whether the tests may take minutes: CLUSTER_LONG is set.
func Long() bool { return os.Getenv("CLUSTER_LONG") != "" }

// NeedsLong skips a test that takes long because the servers elect leaders, unless Long.
func NeedsLong(t testing.TB) {
	t.Helper()
	if !Long() {
		t.Skip("takes long: CLUSTER_LONG is not set, see make cluster-storm")
	}
}
