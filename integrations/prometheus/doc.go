// Package latchprom has collectors for the metrics of latchfree's types, for Prometheus.
//
//	registry.MustRegister(
//		latchprom.Breaker("payments", breaker),
//		latchprom.Cache("clients", cache, latchprom.CacheOptions{}),
//	)
//
// A collector reads the counts that the type keeps anyway, when Prometheus scrapes: it adds
// nothing to an operation. Only [Transitions] and [Creations] count by themselves, in the
// functions of Config that they are given to: OnStateChange and OnCreate.
//
// The name of an instance is the value of a label: two instances of a type in one
// prometheus.Registry need different names, or Register returns an error. A name that is not
// UTF-8 is corrected. README.md lists the metrics, and dashboard.json is a dashboard for
// Grafana.
package latchprom
