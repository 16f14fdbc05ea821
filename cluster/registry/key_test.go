package registry

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestKeys(t *testing.T) {
	for key, want := range map[string]string{
		"":         "=",
		"plain":    "plain",
		"a.b/c-d_": "a.b/c-d_",
		".a":       "=2Ea",
		"a.":       "a=2E",
		"a..b":     "a.=2Eb",
		"...":      "=2E=2E=2E",
		"a b":      "a=20b",
		"a*":       "a=2A",
		">":        "=3E",
		"=sync.01": "=3Dsync.01",
		"ü":        "=C3=BC",
		"\x00\xff": "=00=FF",
	} {
		got, err := encodeKey(key)
		require.NoError(t, err)
		require.Equal(t, want, got)
		back, ok := decodeKey(got)
		require.True(t, ok, got)
		require.Equal(t, key, back)
	}
	_, err := encodeKey(strings.Repeat("x", maxKey+1))
	require.ErrorIs(t, err, ErrInvalidKey)
	_, err = encodeKey(strings.Repeat(" ", maxKey/3+1))
	require.ErrorIs(t, err, ErrInvalidKey)
	_, err = encodeKey(strings.Repeat(" ", maxKey/3))
	require.NoError(t, err)
}

func TestForeignKeys(t *testing.T) {
	for _, s := range []string{"", "=s", "==", "a=", "a=4", "=2e", "=41", "a=2Eb=", syncPrefix + "07", "a=2Eb", "dG8=dG8="} {
		_, ok := decodeKey(s)
		require.False(t, ok, s)
	}
}

func FuzzKeys(f *testing.F) {
	for _, s := range []string{"", "a", "..", "a=b", "=2E", "\xff", "=sync.00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if e, err := encodeKey(s); err == nil {
			back, ok := decodeKey(e)
			require.True(t, ok)
			require.Equal(t, s, back)
			require.False(t, strings.HasPrefix(e, syncPrefix))
			require.Regexp(t, `^[-/_=\.a-zA-Z0-9]+$`, e)
			require.False(t, e[0] == '.' || e[len(e)-1] == '.' || strings.Contains(e, ".."))
		}
		if k, ok := decodeKey(s); ok { // injective the other way
			e, err := encodeKey(k)
			require.NoError(t, err)
			require.Equal(t, s, e)
		}
	})
}
