package atomicbreaker

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// ParsePolicy returns the policy whose String is text, such as
//
//	AnyOf(Consecutive(5), FailureRate(0.5, 20, 10s))
//
// White space does not matter. A text has at most 64 policies, and each AnyOf is one
// of them. For a policy that New does not accept, the error is that of New.
func ParsePolicy(text string) (Policy, error) {
	r := policyReader{rest: text}
	p := r.policy()
	if r.skip(""); r.rest != "" {
		r.fail(r.rest, "must not follow a policy")
	}
	if r.err != nil {
		return nil, fmt.Errorf("atomicbreaker: policy %q: %w", text, r.err)
	}
	if _, err := compileTrip(p); err != nil {
		return nil, err
	}
	return p, nil
}

// maxPolicies is how many policies one text may have, more than anybody
// understands. It bounds how deep ParsePolicy calls itself, and what calls of the
// breaker cost, which ask them all. The length of the text is not bounded: the
// String of a policy may be longer than what it was parsed from.
const maxPolicies = 64

// A policyForm is how a policy is written, and how it is made from its
// arguments, each of which is read when it is asked for.
type policyForm struct {
	call string
	make func(*arguments) Policy
}

func policyForms() []policyForm {
	return []policyForm{
		{"Consecutive(n)", func(a *arguments) Policy { return Consecutive(a.int()) }},
		{"KOfN(k, n)", func(a *arguments) Policy { return KOfN(a.int(), a.int()) }},
		{"FailureRate(ratio, minCalls, window)", func(a *arguments) Policy { return FailureRate(a.float(), a.int(), a.duration()) }},
		{"FailureCount(n, window)", func(a *arguments) Policy { return FailureCount(a.int(), a.duration()) }},
		{"SlowRate(ratio, slow, minCalls, window)", func(a *arguments) Policy { return SlowRate(a.float(), a.duration(), a.int(), a.duration()) }},
		{"AnyOf(policy, ...)", func(a *arguments) Policy { return AnyOf(a.policies()...) }},
	}
}

func (f policyForm) name() string {
	name, _, _ := strings.Cut(f.call, "(")
	return name
}

// A policyReader reads a text from left to right. After an error it goes on to
// the end of the call that it is in, and its results have no meaning.
type policyReader struct {
	rest  string // not read yet
	err   error  // the first
	begun int    // policies
}

// fail says what is wrong with a part of the text.
func (r *policyReader) fail(part, what string) {
	if r.err == nil {
		r.err = fmt.Errorf("%q %s", part, what)
	}
}

// word reads up to the next delimiter.
func (r *policyReader) word() string {
	n := strings.IndexAny(r.rest, "(,)")
	if n < 0 {
		n = len(r.rest)
	}
	word := strings.TrimSpace(r.rest[:n])
	r.rest = r.rest[n:]
	return word
}

// skip reads white space, and then the delimiter if it is there.
func (r *policyReader) skip(delimiter string) (found bool) {
	r.rest = strings.TrimLeftFunc(r.rest, unicode.IsSpace)
	r.rest, found = strings.CutPrefix(r.rest, delimiter)
	return found
}

func (r *policyReader) policy() Policy {
	r.skip("")
	a := arguments{policyReader: r, text: r.rest}
	name := r.word()
	forms := policyForms()
	i := slices.IndexFunc(forms, func(f policyForm) bool { return f.name() == name })
	if i < 0 {
		names := make([]string, len(forms))
		for i, f := range forms {
			names[i] = f.name()
		}
		r.fail(name, "must be one of "+strings.Join(names, ", "))
		return nil
	}
	if r.begun++; r.begun > maxPolicies {
		r.fail(name, fmt.Sprintf("must be among the first %d policies", maxPolicies))
		return nil
	}
	a.form = forms[i]
	a.delimiter("(")
	p := a.form.make(&a)
	a.delimiter(")")
	return p
}

// arguments are those of one policy.
type arguments struct {
	*policyReader
	form policyForm
	text string // from the policy's name on
	n    int    // begun so far
}

// delimiter reads the delimiter that the form demands.
func (a *arguments) delimiter(d string) {
	if !a.skip(d) {
		upToHere := min(len(a.text)-len(a.rest)+1, len(a.text))
		a.fail(a.text[:upToHere], "must be "+a.form.call)
	}
}

// next reads the next argument.
func (a *arguments) next() string {
	if a.n++; a.n > 1 {
		a.delimiter(",")
	}
	return a.word()
}

// parsed returns the next argument as parse reads it. An error says how an argument is
// written, or what parse says if how is empty.
func parsed[T any](a *arguments, how string, parse func(string) (T, error)) T {
	argument := a.next()
	v, err := parse(argument)
	if err != nil {
		a.fail(argument, fmt.Sprintf("%s, as argument %d of %s", cmp.Or(how, err.Error()), a.n, a.form.call))
	}
	return v
}

func (a *arguments) int() int {
	return parsed(a, "must be a whole number that fits an int", strconv.Atoi)
}

func (a *arguments) float() float64 {
	return parsed(a, "must be a number that fits a float64", func(s string) (float64, error) { return strconv.ParseFloat(s, 64) })
}

func (a *arguments) duration() time.Duration { return parsed(a, "", parseDuration) }

func (a *arguments) policies() (all []Policy) {
	if a.skip(""); strings.HasPrefix(a.rest, ")") {
		return nil // which is an error of AnyOf's
	}
	for a.err == nil {
		all = append(all, a.policy())
		if !a.skip(",") {
			break
		}
	}
	return all
}
