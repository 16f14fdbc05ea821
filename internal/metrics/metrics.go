// Package metrics has what the exporters of the integrations report of latchfree's types:
// names, units, texts, and how each value is read. An exporter gives a Source the names of
// its own system.
package metrics

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
)

// A Kind says how values of a family change.
type Kind uint8

// The kinds.
const (
	Counter Kind = iota // a whole number that never goes down
	Amount              // a whole number whose sum over instances makes sense
	Gauge               // any number
)

// A Family is one metric that a type has.
type Family struct {
	Name   string // in lower case, with dots: breaker.state
	Unit   string // as in UCUM
	Help   string
	Kind   Kind
	Labels []string // full names, besides that of the instance: breaker.state
}

// Emit adds a value to what is read, with the values of the family's labels. Labels must be
// UTF-8: see Text.
type Emit func(f *Family, value float64, labels ...string)

// A Source is an instance with its families. It never changes.
type Source struct {
	Type     string // such as breaker_group
	Families []*Family
	Read     func(Emit)
}

// A Sample is a value that was emitted.
type Sample struct {
	Family *Family
	Value  float64
	Labels []string
}

// Samples returns all that Read emits, or an error alone. Functions of users, such as
// GroupOptions.Label, run on a goroutine of their own: one that calls runtime.Goexit would
// take the caller's goroutine with it, and one that blocks must not hold it beyond ctx.
func (s *Source) Samples(ctx context.Context) ([]Sample, error) {
	type result struct {
		samples []Sample
		err     error
	}
	results := make(chan result, 1)
	go func() {
		r := result{err: errors.New("a function called runtime.Goexit")}
		defer func() {
			if p := recover(); p != nil {
				r.err = fmt.Errorf("a function panicked: %v\n%s", p, debug.Stack())
			}
			if r.err != nil {
				r.samples = nil
			}
			results <- r
		}()
		s.Read(func(f *Family, value float64, labels ...string) {
			r.samples = append(r.samples, Sample{f, value, labels})
		})
		r.err = nil
	}()
	select {
	case r := <-results:
		return r.samples, r.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Text returns text with all that is not UTF-8 replaced, as labels must be.
func Text(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
