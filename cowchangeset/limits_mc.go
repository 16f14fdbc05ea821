//go:build modelcheck

package cowchangeset

// What limits.go sets for speed is set here so that few operations get far:
// the second entry needs a second chunk, the third has room in it, and a cut
// looks twice before it kills. Nothing else differs from the code that ships.
const (
	firstChunk = 1
	maxChunk   = 2

	patientLoads  = 1
	patientYields = 0

	loadsPerEntry = 0
)
