package main

import (
	"cmp"
	"fmt"
	"maps"
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
	r := &review{path: pathOf(folder, dir), byKey: map[string]*entry{}}
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

// moved returns what has become of keys that name no mutant of those that operators in
// names make: the key of the only mutant that does the same to the same source and has no
// key of these, as if its function had another name, or "".
func moved(keys []string, mutants []*mutant, names []string) map[string]string {
	there, free := map[string]bool{}, map[string][]string{}
	for _, m := range mutants {
		there[m.key()] = true
		if !slices.Contains(keys, m.key()) {
			free[changeOf(m.key())] = append(free[changeOf(m.key())], m.key())
		}
	}
	gone, rivals := map[string]string{}, map[string]int{}
	for _, key := range keys {
		if slices.Contains(names, operatorOf(key)) && !there[key] {
			gone[key] = ""
			rivals[changeOf(key)]++
		}
	}
	for key := range gone {
		if found := free[changeOf(key)]; len(found) == 1 && rivals[changeOf(key)] == 1 {
			gone[key] = found[0]
		}
	}
	return gone
}

// changeOf returns a key without its function.
func changeOf(key string) string {
	_, change, _ := strings.Cut(key, ": ")
	return change
}

// keys returns the keys of all entries.
func (r *review) keys() (keys []string) {
	for _, e := range r.entries {
		keys = append(keys, e.key)
	}
	return keys
}

// tidy writes the list without the mutants that are gone, and with others where they have
// moved. Reasons go with the last of their mutants.
func (r *review) tidy(gone map[string]string) error {
	text, err := os.ReadFile(r.path)
	if err != nil {
		return err
	}
	var b strings.Builder
	kept, reasoned := 0, false // of the mutants that the next reason is for
	for line := range strings.Lines(string(text)) {
		key := strings.TrimSpace(line)
		switch {
		case key == "" || strings.HasPrefix(line, "#"):
			if b.Len() > 0 && !strings.HasSuffix(b.String(), "\n\n") || key != "" {
				b.WriteString(line)
			}
		case strings.HasPrefix(line, "\t") || strings.HasPrefix(line, " "):
			if reasoned = true; kept > 0 {
				b.WriteString(line)
			}
		default:
			if reasoned {
				kept, reasoned = 0, false
			}
			to, ok := gone[key]
			if !ok || to != "" {
				b.WriteString(cmp.Or(to, key) + "\n")
				kept++
			}
		}
	}
	return os.WriteFile(r.path, []byte(strings.TrimRight(b.String(), "\n")+"\n"), 0o666)
}

// tidy takes what is gone out of the reviews and the record of t, whose mutants were made
// by operators of these names, and puts what has moved under its new key, and in doubt what
// is of other code. It returns what it found, and changes no file if only asked what there is.
func tidy(root string, t *target, mutants []*mutant, names []string, code string, write bool) (found []string, err error) {
	review, err := readReview(filepath.Join(root, reviews), t.dir)
	if err != nil {
		return nil, err
	}
	record, err := readRecord(filepath.Join(root, records), t.dir)
	if err != nil {
		return nil, err
	}
	say := func(where, key, to string) {
		if to != "" {
			to = ", perhaps now " + to
		}
		found = append(found, fmt.Sprintf("%s: no such mutant: %s%s", where, key, to))
	}
	reviewed := moved(review.keys(), mutants, names)
	for _, e := range review.entries {
		if to, ok := reviewed[e.key]; ok {
			say(fmt.Sprintf("%s:%d", review.path, e.line), e.key, to)
		}
	}
	recorded := moved(slices.Collect(maps.Keys(record.byKey)), mutants, names)
	for _, key := range slices.Sorted(maps.Keys(recorded)) {
		say(pathOf(records, t.dir), key, recorded[key])
		if to := recorded[key]; to != "" {
			record.byKey[to] = record.byKey[key]
		}
		delete(record.byKey, key)
	}
	if record.code != code {
		found = append(found, pathOf(records, t.dir)+": verdicts on other code")
		record.code = code
		record.outdate()
	}
	if write && len(reviewed) > 0 {
		err = review.tidy(reviewed)
	}
	if write && len(found) > len(reviewed) {
		err = cmp.Or(err, record.save(filepath.Join(root, records), t.dir))
	}
	return found, err
}
