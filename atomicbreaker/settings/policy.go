package settings

import (
	"fmt"
	"reflect"
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
	if err == nil {
		p.Policy = parsed
	}
	return err
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

// maxPolicies bounds how deep parse calls itself, and what a call of the breaker costs.
const maxPolicies = 64

// parse reads one policy. left is how many policies the text may have from here on.
func parse(text string, left *int) (atomicbreaker.Policy, error) {
	forms := []struct {
		name, parameters string
		make             any
	}{
		{"Consecutive", "(n)", atomicbreaker.Consecutive},
		{"KOfN", "(k, n)", atomicbreaker.KOfN},
		{"FailureRate", "(ratio, minCalls, window)", atomicbreaker.FailureRate},
		{"FailureCount", "(n, window)", atomicbreaker.FailureCount},
		{"SlowRate", "(ratio, slow, minCalls, window)", atomicbreaker.SlowRate},
		{"AnyOf", "(policy, ...)", atomicbreaker.AnyOf},
	}
	text = strings.TrimSpace(text)
	name, rest, _ := strings.Cut(text, "(")
	name = strings.TrimSpace(name)
	var names []string
	for _, f := range forms {
		names = append(names, f.name)
	}
	i := slices.Index(names, name)
	if i < 0 {
		return nil, fmt.Errorf("%q must be one of %s", name, strings.Join(names, ", "))
	}
	if *left--; *left < 0 {
		return nil, fmt.Errorf("%q must be among the first %d policies", name, maxPolicies)
	}
	list, ok := strings.CutSuffix(rest, ")")
	call, maker, texts := name+forms[i].parameters, reflect.ValueOf(forms[i].make), split(list)
	if !ok || !maker.Type().IsVariadic() && len(texts) != maker.Type().NumIn() {
		return nil, fmt.Errorf("%q must be %s", text, call)
	}
	arguments := make([]reflect.Value, len(texts))
	for i, text := range texts {
		var argument any
		var err error
		switch text = strings.TrimSpace(text); {
		case maker.Type().IsVariadic():
			argument, err = parse(text, left)
		case maker.Type().In(i) == reflect.TypeFor[int]():
			argument, err = strconv.Atoi(text)
		case maker.Type().In(i) == reflect.TypeFor[float64]():
			argument, err = strconv.ParseFloat(text, 64)
		default:
			argument, err = time.ParseDuration(text)
		}
		if err != nil {
			return nil, fmt.Errorf("argument %d of %s: %w", i+1, call, err)
		}
		arguments[i] = reflect.ValueOf(argument)
	}
	return maker.Call(arguments)[0].Interface().(atomicbreaker.Policy), nil
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
