//go:build race

package natstest

// Race says that the race detector runs: what is measured is not what a program would take.
const Race = true
