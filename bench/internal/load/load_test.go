package load

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestKeys(t *testing.T) {
	names, urls := Names(100_010), URLs(100_010)
	for _, i := range []int{0, 9, 10, 251, 99_999, 100_000, 100_009} {
		require.Regexp(t, fmt.Sprintf(`^billing\.[a-z]+\.invoice-%06d$`, i), names[i])
		require.Equal(t, fmt.Sprintf("postgres://plans:secret@db-%03d.eu-west.internal:5432/tenant_%06d", i%251, i), urls[i])
	}
}
