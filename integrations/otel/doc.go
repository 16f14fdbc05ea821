// Package latchotel reports latchfree's types by OpenTelemetry: metrics of all of them,
// and spans for the creations of a cache and the calls of a breaker.
//
//	registration, err := latchotel.Breaker(meter, "payments", breaker)
//	defer registration.Unregister()
//
// A function such as [Breaker] registers observable instruments, which read the counts that
// the type keeps anyway when metrics are collected: it adds nothing to an operation. Only
// [Creations], [Transitions] and [KeyTransitions] measure by themselves, in OnCreate and
// OnStateChange.
//
// The name of an instance is an attribute. Two instances of a type need different names:
// OpenTelemetry does not define what comes of two observations with the same attributes.
// README.md lists the metrics.
package latchotel
