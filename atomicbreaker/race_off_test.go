//go:build !race

package atomicbreaker_test

const raceEnabled = false
