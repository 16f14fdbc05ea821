// Package settings has the settings of a breaker as text, for documents and flags.
//
//	{"policy": "AnyOf(Consecutive(5), SlowRate(0.5, 2s, 20, 1m))", "openTimeout": "30s"}
//
// encoding/json and yaml.v3 read and write a [Breaker]. [Policy] and [Duration] work with
// everything that uses encoding.TextUnmarshaler, such as flag.TextVar, and mapstructure
// with its TextUnmarshallerHookFunc.
package settings
