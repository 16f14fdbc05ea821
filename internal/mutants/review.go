package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A review is the list of a target's mutants that may live, each with the
// reason why. In the file, a line without indentation is the key of a mutant,
// and the indented lines that follow say why, of this one and of those right
// above it; lines that start with # are comments.
type review struct {
	path    string
	entries []*entry
	byKey   map[string]*entry
}

type entry struct {
	key, reason string
	line        int
}

// readReview reads the list of the target in dir from a folder.
func readReview(folder, dir string) (*review, error) {
	r := &review{
		path:  filepath.Join(folder, strings.ReplaceAll(dir, "/", "-")+".txt"),
		byKey: map[string]*entry{},
	}
	text, err := os.ReadFile(r.path)
	if os.IsNotExist(err) {
		return r, nil
	} else if err != nil {
		return nil, err
	}
	var open []*entry // without a reason so far
	reasoned := false // whether the last line was part of a reason
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		text := strings.TrimSpace(line)
		switch {
		case text == "" || strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "\t") || strings.HasPrefix(line, " "):
			if len(open) == 0 {
				return nil, fmt.Errorf("%s:%d: a reason without a mutant", r.path, n)
			}
			for _, e := range open {
				e.reason += text + " "
			}
			reasoned = true
		default:
			if reasoned {
				open, reasoned = nil, false
			}
			if r.byKey[text] != nil {
				return nil, fmt.Errorf("%s:%d: listed twice: %s", r.path, n, text)
			}
			e := &entry{key: text, line: n}
			open = append(open, e)
			r.entries = append(r.entries, e)
			r.byKey[text] = e
		}
	}
	for _, e := range r.entries {
		if e.reason == "" {
			return nil, fmt.Errorf("%s:%d: no reason is given for %s", r.path, e.line, e.key)
		}
		if operatorOf(e.key) == "" {
			return nil, fmt.Errorf("%s:%d: no key of a mutant: %s", r.path, e.line, e.key)
		}
	}
	return r, nil
}

// operatorOf returns the operator that a key names, or "".
func operatorOf(key string) string {
	parts := strings.SplitN(key, ": ", 3)
	if len(parts) == 3 && (slices.Contains(concurrencyNames, parts[1]) || slices.Contains(sequentialNames, parts[1])) {
		return parts[1]
	}
	return ""
}

func (r *review) lists(m *mutant) bool { return r.byKey[m.key()] != nil }

// outdated returns what the list says of mutants that do not live, or, if all
// were made whose operator is one of names, do not exist. A mutant that only a
// limit stopped may have lived: the machine was busy.
func (r *review) outdated(mutants []*mutant, verdicts map[*mutant]*verdict, all bool, names []string) (wrong []string) {
	found := map[string]bool{}
	for _, m := range mutants {
		e, v := r.byKey[m.key()], verdicts[m]
		if e == nil || v == nil {
			continue
		}
		found[e.key] = true
		switch v.fate {
		case killed:
			wrong = append(wrong, fmt.Sprintf("%s:%d: it does not live: %s %s kills it: %s", r.path, e.line, v.layer, v.test, e.key))
		case same:
			wrong = append(wrong, fmt.Sprintf("%s:%d: it is the same machine code: %s", r.path, e.line, e.key))
		}
	}
	for _, e := range r.entries {
		if all && !found[e.key] && slices.Contains(names, operatorOf(e.key)) {
			wrong = append(wrong, fmt.Sprintf("%s:%d: there is no such mutant: %s", r.path, e.line, e.key))
		}
	}
	return wrong
}
