//go:build modelcheck && !race

package mc_test

const underRace = false
