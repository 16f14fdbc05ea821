package sqlstore_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The sample of the README is the body of the example.
func TestReadmeShowsTheExample(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	source, err := os.ReadFile("example_test.go")
	require.NoError(t, err)
	_, body, _ := strings.Cut(string(source), "\nfunc Example() {\n")
	body, _, _ = strings.Cut(body, "\n}\n")
	var sample strings.Builder
	for line := range strings.Lines(body + "\n") {
		sample.WriteString(strings.TrimPrefix(line, "\t"))
	}
	require.Contains(t, string(readme), "<!-- sqlstore.Example -->\n```go\n"+sample.String()+"```\n")
}
