package atomicbreaker

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"
)

// Duration is a time.Duration that is text in documents, such as "1m30s". A
// number has no meaning without a unit, and is an error.
type Duration time.Duration

// String returns what time.Duration.String does.
func (d Duration) String() string { return time.Duration(d).String() }

// MarshalText returns d.String().
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText sets d to what time.ParseDuration makes of text.
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := parseDuration(string(text))
	if err != nil {
		return fmt.Errorf("atomicbreaker: duration %q %w", text, err)
	}
	*d = Duration(parsed)
	return nil
}

// parseDuration is time.ParseDuration, with errors that go on where the text
// ends.
func parseDuration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	switch {
	case err == nil:
		return d, nil
	case text != "" && strings.Contains("0123456789.", text[len(text)-1:]):
		return 0, errors.New("must end with a unit, such as s or ms")
	}
	return 0, errors.New(`must be like "1m30s", in units from ns to h, and below 292 years`)
}

// PolicyText is a Policy that is text in documents, as in ParsePolicy. An empty text
// and a nil Policy stand for the default.
type PolicyText struct{ Policy Policy }

// MarshalText returns Policy.String(). It returns an error if ParsePolicy does not
// return an equal policy for that: if New would not accept the policy, or if the
// policy has no text form.
func (p PolicyText) MarshalText() ([]byte, error) {
	if p.Policy == nil {
		return nil, nil
	}
	text := p.Policy.String()
	parsed, err := ParsePolicy(text)
	if err != nil {
		return nil, fmt.Errorf("%w (so it has no text form)", err)
	}
	if !reflect.DeepEqual(parsed, p.Policy) {
		return nil, fmt.Errorf("atomicbreaker: policy %q is a %T, which has no text form", text, p.Policy)
	}
	return []byte(text), nil
}

// UnmarshalText sets p to what ParsePolicy makes of text.
func (p *PolicyText) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		p.Policy = nil
		return nil
	}
	parsed, err := ParsePolicy(string(text))
	if err != nil {
		return err
	}
	p.Policy = parsed
	return nil
}
