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

	"github.com/latchfree/latchfree/internal/atomics"
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

// family adds a family.
func (s *Source) family(name, unit, help string, kind Kind, labels ...string) *Family {
	f := &Family{name, unit, help, kind, labels}
	s.Families = append(s.Families, f)
	return f
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
	var samples []Sample
	err := errors.New("a function called runtime.Goexit")
	done := atomics.MakeEvent()
	atomics.Go(func() {
		defer done.Fire()
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("a function panicked: %v\n%s", p, debug.Stack())
			}
		}()
		s.Read(func(f *Family, value float64, labels ...string) {
			samples = append(samples, Sample{f, value, labels})
		})
		err = nil
	})
	if done.WaitContext(ctx) != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, err
	}
	return samples, nil
}

// Text returns text with all that is not UTF-8 replaced, as labels must be.
func Text(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
