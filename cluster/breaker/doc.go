// Package breaker makes the circuit breakers of several replicas tell each other what
// they have found out, over a NATS JetStream stream.
//
// A [Group] is an [atomicbreaker.Group] with the same methods for requests. Each replica
// decides alone, from its own results; what it hears from others are hints:
//
//   - When another replica's breaker has opened for a key, the key opens here too, for a
//     bounded time.
//   - When that replica has recovered, a key that was opened by its hint lets probes
//     through.
//   - ForceOpen, Disable, Trip, HalfOpen, Reset and ResetAll of one replica apply to all,
//     also to those that start later.
//
// No request waits for the engine: hints are published and received by two goroutines of
// the group. A hint may be late or lost. While the engine is away the group works as it
// would alone, and NewGroup works too.
//
// A single replica that cannot reach a dependency opens its key at all others once each
// time that its breaker goes from closed to open, and its probes that fail do not.
// Config.Quorum makes the others wait for more than one such report.
//
// See DESIGN.md for the subjects and rules.
package breaker
