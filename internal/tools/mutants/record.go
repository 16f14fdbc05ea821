package main

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A record is what a target's campaigns have found, as it is kept beside the
// sources: for whoever runs the next one, which begins with the tests that
// killed last time, and believes verdicts on sources that are what they were.
//
// In the file a line without indentation is a verdict: a layer, a test and the
// hash by which the verdict is known to hold (see remembered.Tests), or "lived"
// or "same" and a hash. The indented lines that follow are the keys of the
// mutants. A verdict whose hash is "-" tells the next campaign where to begin and
// no more: it was on other sources than those that the file names at its top, or
// the test was slow, and not certainly because of the mutant. The code is a hash that
// a test compares with that of the code: tidy puts it right, and the dashes.
//
// Of the mutants that sequential operators make, which are many and mostly die in the first test, one
// line says how many met which fate, on which sources.
type record struct {
	sources    string // see toolchain.sources
	code       string // see toolchain.code
	sequential string // the line, or ""
	byKey      map[string]remembered
}

// pathOf returns where the record, or the review, of the target in dir is, below a folder.
func pathOf(folder, dir string) string {
	return filepath.Join(folder, strings.ReplaceAll(dir, "/", "-")+".txt")
}

// The words of a record.
const (
	sourcesWord    = "sources"
	codeWord       = "code"
	sequentialWord = "sequential"
	doubtedWord    = "doubted"
	reviewedWord   = "reviewed"
	livedWord      = "lived"
	sameWord       = "same"
	outdated       = "-"
)

// readRecord reads the record of the target in dir from a folder.
func readRecord(folder, dir string) (*record, error) {
	r := &record{byKey: map[string]remembered{}}
	path := pathOf(folder, dir)
	text, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return r, nil
	} else if err != nil {
		return nil, err
	}
	var verdict *remembered
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		line = strings.TrimSuffix(line, "\n")
		switch key, ok := strings.CutPrefix(line, "\t"); {
		case line == "" || strings.HasPrefix(line, "#"):
		case ok && verdict != nil:
			r.byKey[key] = *verdict
		case !ok:
			words := strings.Fields(line)
			if len(words) == 2 && words[0] == sourcesWord {
				r.sources = words[1]
			} else if len(words) == 2 && words[0] == codeWord {
				r.code = words[1]
			} else if words[0] == sequentialWord {
				r.sequential = line
			} else if verdict = parseVerdict(words); verdict == nil {
				return nil, fmt.Errorf("%s:%d: no verdict: %s", path, n, line)
			}
		default:
			return nil, fmt.Errorf("%s:%d: a mutant without a verdict", path, n)
		}
	}
	return r, nil
}

func parseVerdict(words []string) *remembered {
	switch {
	case len(words) == 2 && words[0] == livedWord:
		return &remembered{Fate: lived, Tests: words[1]}
	case len(words) == 2 && words[0] == sameWord:
		return &remembered{Fate: same, Tests: words[1]}
	case len(words) == 3:
		return &remembered{Fate: killed, Layer: words[0], How: failed, Test: words[1], Tests: words[2]}
	}
	return nil
}

// line is what the record says of a mutant above its key.
func (r remembered) line() string {
	switch r.Fate {
	case lived:
		return livedWord + " " + r.Tests
	case same:
		return sameWord + " " + r.Tests
	default:
		return r.Layer + " " + r.Test + " " + r.Tests
	}
}

// put writes down what is known.
func (c *campaign) put(names []string) (err error) {
	if c.sources, err = c.toolchain.sources(c.target.dir); err != nil {
		return err
	}
	if c.code, err = c.toolchain.code(c.target.dir); err != nil {
		return err
	}
	r := c.note(names)
	if c.config.sequential {
		c.sum(r)
	}
	return r.save(filepath.Join(c.home, records), c.target.dir)
}

// sum replaces what r says of the campaign's mutants by numbers. What was not tried counts as living, but numbers
// of the same sources stay as long as not all is known again: for instance where the cache is new.
func (c *campaign) sum(r *record) {
	counts, untried := map[string]int{}, false
	for _, m := range c.mutants {
		known, ok := r.byKey[m.key()]
		delete(r.byKey, m.key())
		switch {
		case c.review.lists(m):
			counts[reviewedWord]++
		case !ok || known.Fate == lived:
			counts[livedWord]++
			untried = untried || !ok
		case known.Fate == same:
			counts[sameWord]++
		case known.Tests == outdated:
			counts[doubtedWord]++
		default:
			counts[known.Layer]++
		}
	}
	on := sequentialWord + " " + c.sources
	if untried && strings.HasPrefix(r.sequential, on) {
		return
	}
	r.sequential = on
	for _, word := range append(layerNames(), doubtedWord, reviewedWord, livedWord, sameWord) {
		if counts[word] > 0 {
			r.sequential += fmt.Sprintf(" %s %d", word, counts[word])
		}
	}
}

// candidates returns what is known of m, the best first: on sources that are what
// they were, and at last, with outdated in place of a hash, on others.
func (c *campaign) candidates(m *mutant) (all []remembered) {
	if c.memory != nil {
		c.memory.mu.Lock()
		defer c.memory.mu.Unlock()
		for _, layer := range append(layerNames(), "") {
			if r, ok := c.memory.known[c.identity(m, layer)]; ok {
				all = append(all, r)
			}
		}
	}
	recorded, ok := c.record.byKey[m.key()]
	if ok && c.record.sources == c.sources {
		all = append(all, recorded)
	}
	if c.memory != nil {
		if r, ok := c.memory.last[c.what(m)]; ok {
			r.Tests = outdated
			all = append(all, r)
		}
	}
	if ok {
		recorded.Tests = outdated
		all = append(all, recorded)
	}
	return all
}

// note returns a record of what is known of all mutants by now. What it was of
// mutants that operators make which the campaign does not use, it still is.
func (c *campaign) note(names []string) *record {
	r := &record{c.sources, c.code, c.record.sequential, map[string]remembered{}}
	if c.record.code != c.code {
		r.sequential = doubt(r.sequential)
	}
	for key, known := range c.record.byKey {
		if c.record.sources != c.sources {
			known.Tests = outdated
		}
		if !slices.Contains(names, operatorOf(key)) {
			r.byKey[key] = known
		}
	}
	for _, m := range c.mutants {
		for _, known := range c.candidates(m) {
			if known.Fate != lived && known.Fate != same && known.Test == "" {
				continue
			}
			if known.How == slow { // which may say more of the machine that day
				known.Tests = outdated
			}
			if best, ok := r.byKey[m.key()]; !ok || best.Tests == outdated && known.Tests != outdated {
				r.byKey[m.key()] = known
			}
		}
	}
	return r
}

// outdate puts in doubt what r says, which is of other code.
func (r *record) outdate() {
	for key, known := range r.byKey {
		known.Tests = outdated
		r.byKey[key] = known
	}
	r.sequential = doubt(r.sequential)
}

// doubt returns the line about sequential mutants with all in doubt that do not live.
func doubt(line string) string {
	words := strings.Fields(line)
	if len(words) == 0 {
		return ""
	}
	doubted, live := 0, ""
	for fate := range slices.Chunk(words[2:], 2) {
		if n, err := strconv.Atoi(fate[1]); fate[0] == reviewedWord || fate[0] == livedWord || err != nil {
			live += " " + strings.Join(fate, " ")
		} else {
			doubted += n
		}
	}
	return fmt.Sprintf("%s %s %d%s", strings.Join(words[:2], " "), doubtedWord, doubted, live)
}

// write writes the record as readRecord reads it.
func (r *record) write(b *bytes.Buffer, dir string) {
	fmt.Fprintf(b, "# What became of the mutants of %s, and the test that killed them: see README.md, The record.\n%s %s\n%s %s\n",
		dir, sourcesWord, r.sources, codeWord, r.code)
	if r.sequential != "" {
		fmt.Fprintln(b, r.sequential)
	}
	byLine := map[string][]string{}
	for key, known := range r.byKey {
		byLine[known.line()] = append(byLine[known.line()], key)
	}
	for _, line := range slices.SortedFunc(maps.Keys(byLine), func(x, y string) int {
		return cmp.Or(cmp.Compare(rankOf(x), rankOf(y)), cmp.Compare(x, y))
	}) {
		slices.Sort(byLine[line])
		fmt.Fprintf(b, "%s\n\t%s\n", line, strings.Join(byLine[line], "\n\t"))
	}
}

// rankOf orders verdicts as their layers are ordered; what lived comes last.
func rankOf(line string) int {
	word, _, _ := strings.Cut(line, " ")
	if i := slices.Index(layerNames(), word); i >= 0 {
		return i
	}
	return len(layers)
}

// save writes the record of the target in dir into a folder.
func (r *record) save(folder, dir string) error {
	var text bytes.Buffer
	r.write(&text, dir)
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return err
	}
	return os.WriteFile(pathOf(folder, dir), text.Bytes(), 0o666)
}
