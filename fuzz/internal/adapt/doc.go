// Package adapt has what sequences, interleavings and histories share: how they use a real type,
// and the settings that they choose from.
package adapt
