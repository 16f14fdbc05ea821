//go:build modelcheck

package cowchangeset

// What limits.go sets for speed is set here so that few operations get far:
// chunks of 1, 2, 4, 4, … slots, and cuts that look twice before they kill.
// Nothing else differs from the code that ships.
const (
	firstChunk = 1
	maxChunk   = 4

	patientLoads  = 1
	patientYields = 0

	loadsPerEntry = 0
)
