package settings

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/latchfree/latchfree/atomicbreaker"
)

// Policy is an atomicbreaker.Policy that is text in documents, as in ParsePolicy. An
// empty text and nil stand for the default.
type Policy struct{ Policy atomicbreaker.Policy }

// String returns the text, which is empty for nil.
func (p Policy) String() string {
	if p.Policy == nil {
		return ""
	}
	return p.Policy.String()
}

// MarshalText returns the text that ParsePolicy takes. It returns an error if there is
// none, as for a TripFunc, or if atomicbreaker.New does not accept the policy.
func (p Policy) MarshalText() ([]byte, error) {
	text := p.String()
	if p.Policy != nil {
		if _, err := ParsePolicy(text); err != nil {
			return nil, fmt.Errorf("%w (so it has no text form)", err)
		}
	}
	return []byte(text), nil
}

// UnmarshalText sets p to what ParsePolicy makes of text.
func (p *Policy) UnmarshalText(text []byte) error {
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

// ParsePolicy returns the policy whose String is text, such as
//
//	AnyOf(Consecutive(5), FailureRate(0.5, 20, 10s))
//
// White space does not matter. A text has at most 64 policies, and each AnyOf is one
// of them. For a policy that atomicbreaker.New does not accept, the error is that of New.
func ParsePolicy(text string) (atomicbreaker.Policy, error) {
	left := maxPolicies
	p, err := parse(text, &left)
	if err != nil {
		return nil, fmt.Errorf("settings: policy %q: %w", text, err)
	}
	if _, err := atomicbreaker.New(atomicbreaker.Config{Policy: p}); err != nil {
		return nil, err
	}
	return p, nil
}

// maxPolicies is how many policies one text may have, more than anybody understands. It
// bounds how deep parse calls itself, and what a call of the breaker costs, which asks
// them all.
const maxPolicies = 64

// A form is how a policy is written, and how it is made from its arguments, each of
// which is read when it is asked for.
type form struct {
	call string
	make func(*arguments) policy
}

type policy = atomicbreaker.Policy

func forms() []form {
	return []form{
		{"Consecutive(n)", func(a *arguments) policy { return atomicbreaker.Consecutive(a.int()) }},
		{"KOfN(k, n)", func(a *arguments) policy { return atomicbreaker.KOfN(a.int(), a.int()) }},
		{"FailureRate(ratio, minCalls, window)", func(a *arguments) policy {
			return atomicbreaker.FailureRate(a.float(), a.int(), a.duration())
		}},
		{"FailureCount(n, window)", func(a *arguments) policy { return atomicbreaker.FailureCount(a.int(), a.duration()) }},
		{"SlowRate(ratio, slow, minCalls, window)", func(a *arguments) policy {
			return atomicbreaker.SlowRate(a.float(), a.duration(), a.int(), a.duration())
		}},
		{anyOf, func(a *arguments) policy { return atomicbreaker.AnyOf(a.policies()...) }},
	}
}

// anyOf is the form with any number of arguments.
const anyOf = "AnyOf(policy, ...)"

func (f form) name() string {
	name, _, _ := strings.Cut(f.call, "(")
	return name
}

// parse reads one policy. left is how many policies the text may have from here on.
func parse(text string, left *int) (policy, error) {
	text = strings.TrimSpace(text)
	name, rest, _ := strings.Cut(text, "(")
	name = strings.TrimSpace(name)
	all := forms()
	i := slices.IndexFunc(all, func(f form) bool { return f.name() == name })
	if i < 0 {
		names := make([]string, len(all))
		for i, f := range all {
			names[i] = f.name()
		}
		return nil, fmt.Errorf("%q must be one of %s", name, strings.Join(names, ", "))
	}
	if *left--; *left < 0 {
		return nil, fmt.Errorf("%q must be among the first %d policies", name, maxPolicies)
	}
	a := arguments{call: all[i].call, left: left}
	list, ok := strings.CutSuffix(rest, ")")
	if a.texts = split(list); !ok || a.call != anyOf && len(a.texts) != strings.Count(a.call, ",")+1 {
		return nil, fmt.Errorf("%q must be %s", text, a.call)
	}
	p := all[i].make(&a)
	return p, a.err
}

// split cuts a list at the commas that are in no parentheses.
func split(list string) (parts []string) {
	if strings.TrimSpace(list) == "" {
		return nil
	}
	depth, begin := 0, 0
	for i, c := range list {
		switch c {
		case '(':
			depth++
		case ')':
			depth--
		case ',':
			if depth == 0 {
				parts = append(parts, list[begin:i])
				begin = i + 1
			}
		}
	}
	return append(parts, list[begin:])
}

// arguments are those of one policy.
type arguments struct {
	call  string   // how the policy is written
	texts []string // not read yet
	read  int
	left  *int
	err   error // the first
}

// next returns the next argument as parse reads it.
func next[T any](a *arguments, parse func(string) (T, error)) (v T) {
	v, err := parse(strings.TrimSpace(a.texts[0]))
	a.texts, a.read = a.texts[1:], a.read+1
	if err != nil && a.err == nil {
		a.err = fmt.Errorf("argument %d of %s: %w", a.read, a.call, err)
	}
	return v
}

func (a *arguments) int() int { return next(a, strconv.Atoi) }

func (a *arguments) float() float64 {
	return next(a, func(s string) (float64, error) { return strconv.ParseFloat(s, 64) })
}

func (a *arguments) duration() time.Duration { return next(a, time.ParseDuration) }

func (a *arguments) policies() (all []policy) {
	for len(a.texts) > 0 && a.err == nil {
		all = append(all, next(a, func(s string) (policy, error) { return parse(s, a.left) }))
	}
	return all
}
