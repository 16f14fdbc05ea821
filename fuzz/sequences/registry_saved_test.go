package sequences

import (
	"bytes"
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/shardedregistry/snapfile"
)

// compareSaved compares what is loaded after the registry was saved with the model, and
// begins each key anew, above all versions that it had.
func (s *registryRun) compareSaved() {
	saved := s.r.Registry
	var file bytes.Buffer
	format := snapfile.Format[string, int]{Keys: snapfile.String[string]{}}
	require.NoError(s.t, snapfile.Write(&file, saved, format))
	loaded, err := snapfile.Read(&file, namesConfig, format)
	require.NoError(s.t, err)
	s.compareLoops(loaded, s.m)
	last := saved.Snapshot().Last()
	for _, e := range slices.Collect(s.m.Entries()) {
		require.LessOrEqual(s.t, e.Version, last)
	}
	for _, name := range []string{"backup", "resize", "drain"} {
		e, present := s.m.Lookup(name)
		version, err := loaded.Put(name, -1)
		require.NoError(s.t, err)
		if present {
			require.Equal(s.t, e.Version+1, version)
		} else {
			require.Greater(s.t, version, last)
		}
		require.NoError(s.t, loaded.DeleteIf(name, version))
	}
}
