// Package settings has the settings of a breaker as text, for documents and flags.
//
//	{"policy": "AnyOf(Consecutive(5), SlowRate(0.5, 2s, 20, 1m))", "openTimeout": "30s"}
//
// encoding/json and yaml.v3 read and write a [Breaker]. [Policy] and [Duration] work with
// everything that uses encoding.TextUnmarshaler, such as flag.TextVar, and mapstructure
// with its TextUnmarshallerHookFunc.
package settings

import (
	"fmt"
	"time"

	"github.com/latchfree/latchfree/atomicbreaker"
)

// Breaker holds the fields of an atomicbreaker.Config that are not functions. A field
// that a document leaves out has its default.
type Breaker struct {
	Name             string   `json:"name,omitempty" yaml:"name,omitempty"`
	Policy           Policy   `json:"policy,omitzero" yaml:"policy,omitempty"`
	Shadow           bool     `json:"shadow,omitempty" yaml:"shadow,omitempty"`
	OpenTimeout      Duration `json:"openTimeout,omitempty" yaml:"openTimeout,omitempty"`
	MaxOpenTimeout   Duration `json:"maxOpenTimeout,omitempty" yaml:"maxOpenTimeout,omitempty"`
	Jitter           float64  `json:"jitter,omitempty" yaml:"jitter,omitempty"`
	Probes           int      `json:"probes,omitempty" yaml:"probes,omitempty"`
	CloseAfter       int      `json:"closeAfter,omitempty" yaml:"closeAfter,omitempty"`
	ProbeFailureRate float64  `json:"probeFailureRate,omitempty" yaml:"probeFailureRate,omitempty"`
	ProbeTimeout     Duration `json:"probeTimeout,omitempty" yaml:"probeTimeout,omitempty"`
	RecordTotals     bool     `json:"recordTotals,omitempty" yaml:"recordTotals,omitempty"`
	DetailedErrors   bool     `json:"detailedErrors,omitempty" yaml:"detailedErrors,omitempty"`
}

// Config returns the settings as a Config without functions. atomicbreaker.New and
// NewGroup check them.
func (b Breaker) Config() atomicbreaker.Config {
	return atomicbreaker.Config{
		Name:             b.Name,
		Policy:           b.Policy.Policy,
		Shadow:           b.Shadow,
		OpenTimeout:      time.Duration(b.OpenTimeout),
		MaxOpenTimeout:   time.Duration(b.MaxOpenTimeout),
		Jitter:           b.Jitter,
		Probes:           b.Probes,
		CloseAfter:       b.CloseAfter,
		ProbeFailureRate: b.ProbeFailureRate,
		ProbeTimeout:     time.Duration(b.ProbeTimeout),
		RecordTotals:     b.RecordTotals,
		DetailedErrors:   b.DetailedErrors,
	}
}

// Duration is a time.Duration that is text in documents, such as "1m30s". A
// number has no meaning without a unit, and is an error.
type Duration time.Duration

// String returns what time.Duration.String does.
func (d Duration) String() string { return time.Duration(d).String() }

// MarshalText returns d.String().
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText sets d to what time.ParseDuration makes of text.
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("settings: %w", err)
	}
	*d = Duration(parsed)
	return nil
}
