package changeset_test

import (
	"os"
)

// long reports whether tests may take minutes.
func long() bool { return os.Getenv("CLUSTER_LONG") != "" }
