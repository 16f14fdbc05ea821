package atomicbreaker

import "time"

// Settings holds the fields of a Config that are not functions, for documents and
// flags. A field that a document leaves out has its default.
//
//	{"trip": "AnyOf(Consecutive(5), SlowRate(0.5, 2s, 20, 1m))", "openTimeout": "30s"}
//
// encoding/json and yaml.v3 read and write Settings. Duration and PolicyText work
// with everything that uses encoding.TextUnmarshaler, such as flag.TextVar.
type Settings struct {
	Name             string     `json:"name,omitempty" yaml:"name,omitempty"`
	Trip             PolicyText `json:"trip,omitzero" yaml:"trip,omitempty"`
	Shadow           bool       `json:"shadow,omitempty" yaml:"shadow,omitempty"`
	OpenTimeout      Duration   `json:"openTimeout,omitempty" yaml:"openTimeout,omitempty"`
	MaxOpenTimeout   Duration   `json:"maxOpenTimeout,omitempty" yaml:"maxOpenTimeout,omitempty"`
	Jitter           float64    `json:"jitter,omitempty" yaml:"jitter,omitempty"`
	Probes           int        `json:"probes,omitempty" yaml:"probes,omitempty"`
	CloseAfter       int        `json:"closeAfter,omitempty" yaml:"closeAfter,omitempty"`
	ProbeFailureRate float64    `json:"probeFailureRate,omitempty" yaml:"probeFailureRate,omitempty"`
	ProbeTimeout     Duration   `json:"probeTimeout,omitempty" yaml:"probeTimeout,omitempty"`
	DetailedErrors   bool       `json:"detailedErrors,omitempty" yaml:"detailedErrors,omitempty"`
}

// Config returns the settings as a Config without functions. New and NewGroup check
// them.
func (s Settings) Config() Config {
	return Config{
		Name:             s.Name,
		Trip:             s.Trip.Policy,
		Shadow:           s.Shadow,
		OpenTimeout:      time.Duration(s.OpenTimeout),
		MaxOpenTimeout:   time.Duration(s.MaxOpenTimeout),
		Jitter:           s.Jitter,
		Probes:           s.Probes,
		CloseAfter:       s.CloseAfter,
		ProbeFailureRate: s.ProbeFailureRate,
		ProbeTimeout:     time.Duration(s.ProbeTimeout),
		DetailedErrors:   s.DetailedErrors,
	}
}

// Settings returns c without Backoff, Classify and OnStateChange, which no
// document can hold, or an error if Trip has no text form.
func (c Config) Settings() (Settings, error) {
	trip := PolicyText{c.Trip}
	if _, err := trip.MarshalText(); err != nil {
		return Settings{}, err
	}
	return Settings{
		Name:             c.Name,
		Trip:             trip,
		Shadow:           c.Shadow,
		OpenTimeout:      Duration(c.OpenTimeout),
		MaxOpenTimeout:   Duration(c.MaxOpenTimeout),
		Jitter:           c.Jitter,
		Probes:           c.Probes,
		CloseAfter:       c.CloseAfter,
		ProbeFailureRate: c.ProbeFailureRate,
		ProbeTimeout:     Duration(c.ProbeTimeout),
		DetailedErrors:   c.DetailedErrors,
	}, nil
}
