package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"go/scanner"
	"go/token"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// memory is what became of mutants in earlier campaigns, so that one that was
// interrupted goes on where it was. A verdict is known by the mutant and by the
// sources of the package and of what it needs. Beyond that,
//
//   - what was killed is dead as long as the file with the test that killed it
//     is what it was;
//   - what lived lives as long as all tests, and what they are made of, are what
//     they were; or, if a person has said why it may, in any case.
type memory struct {
	mu    sync.Mutex
	file  *os.File // one verdict a line
	known map[string]remembered
	last  map[string]remembered // of each mutant, by what it is for people
}

// remembered is a verdict without the output.
type remembered struct {
	Key   string
	What  string // the mutant, for people
	Fate  fate
	Layer string // that killed it
	How   ending
	Test  string
	Tests string // a hash of the file with the test that killed it, or of all that did not
	Took  time.Duration
}

// openMemory reads the verdicts in a file, and will append new ones.
func openMemory(path string) (*memory, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o666)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(f)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	m := &memory{file: f, known: map[string]remembered{}, last: map[string]remembered{}}
	for line := range bytes.Lines(text) {
		var r remembered
		if json.Unmarshal(line, &r) == nil { // or it was cut off
			m.add(r)
		}
	}
	if !bytes.HasSuffix(text, []byte("\n")) {
		_, err = f.WriteString("\n")
	}
	return m, err
}

func (m *memory) add(r remembered) {
	m.known[r.Key] = r
	m.last[r.What] = r
}

// last returns the test in b that killed m in the latest campaign, which may
// have been at other sources, or "".
func (c *campaign) last(m *mutant, b *baseline) string {
	for _, r := range c.candidates(m) {
		if _, ok := b.took[r.Test]; ok && r.Layer == b.name {
			return r.Test
		}
	}
	return ""
}

// what names a mutant for people.
func (c *campaign) what(m *mutant) string { return c.target.dir + " " + m.key() }

// recall returns what became of a mutant, or nil.
func (c *campaign) recall(m *mutant) *verdict {
	if c.config.again {
		return nil
	}
	for _, r := range c.candidates(m) {
		if c.holds(m, r) {
			return r.verdict()
		}
	}
	return nil
}

// holds reports whether what is known of m is still so.
func (c *campaign) holds(m *mutant, r remembered) bool {
	if r.Tests == "" || r.Tests == outdated {
		return false // "": nobody knows which test it was
	}
	if r.Layer == "" {
		return r.Tests == c.tests() || r.Fate == lived && c.review.lists(m)
	}
	for _, b := range c.baselines {
		if b.name == r.Layer {
			return r.Tests == b.files[top(r.Test)]
		}
	}
	return false
}

func (r remembered) verdict() *verdict {
	return &verdict{fate: r.Fate, layer: r.Layer, result: result{how: r.How, test: r.Test}, took: r.Took, before: true}
}

// keep remembers v.
func (c *campaign) keep(m *mutant, v *verdict) error {
	if c.memory == nil {
		return nil
	}
	r := remembered{c.identity(m, v.layer), c.what(m), v.fate, v.layer, v.how, v.test, c.tests(), v.took}
	if i := slices.IndexFunc(c.baselines, func(b *baseline) bool { return b.name == v.layer }); i >= 0 {
		r.Tests = c.baselines[i].files[top(v.test)]
	}
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	c.memory.mu.Lock()
	defer c.memory.mu.Unlock()
	c.memory.add(r)
	_, err = c.memory.file.Write(append(line, '\n'))
	return err
}

// identity names a mutant, what it is made of, and the layer that killed it
// ("": it lived).
func (c *campaign) identity(m *mutant, layer string) string {
	h := sha256.New()
	fmt.Fprintln(h, c.sources, m.source.name(), m.key(), layer)
	h.Write(m.text)
	return sum(h)
}

// tests names all that is run on a mutant that lives.
func (c *campaign) tests() string {
	h := sha256.New()
	for _, b := range c.baselines {
		fmt.Fprintln(h, b.name, b.tests, b.args, b.env, b.inputs)
	}
	return sum(h)
}

// top returns the name of the function that a subtest belongs to.
func top(test string) string {
	name, _, _ := strings.Cut(test, "/")
	return name
}

// sources returns a hash of the target and of what it needs: the compiler's
// version, and the files of the module's packages that are no tests. Of other
// modules go.sum says which they are.
func (g *toolchain) sources(target string) (string, error) {
	h := sha256.New()
	for _, b := range []build{plain, modelcheck} {
		err := g.needs(h, b, target)
		if err != nil {
			return "", err
		}
	}
	return sum(h), nil
}

// inputs returns a hash of all that the tests in dir are made of and may read:
// beside sources, in their own folder whatever is no prose.
func (g *toolchain) inputs(b build, dir string) (string, error) {
	h := sha256.New()
	err := errors.Join(g.needs(h, b, dir, "-test"), hashTree(h, g.root, filepath.Join(g.root, filepath.FromSlash(dir)), true))
	return sum(h), err
}

// folders returns the module's folders that a build of the package in dir needs.
func (g *toolchain) folders(b build, dir string, flags ...string) ([]string, error) {
	const format = "{{with .Module}}{{if .Main}}{{$.Dir}}{{end}}{{end}}"
	args := slices.Concat([]string{"list", "-deps", "-f", format}, flags, b.flags, []string{"./" + dir})
	out, err := g.run(args...)
	if err != nil {
		return nil, err
	}
	folders := strings.Fields(string(out))
	slices.Sort(folders)
	return slices.Compact(folders), nil
}

// needs writes to h what a build of the package in dir is made of.
func (g *toolchain) needs(h io.Writer, b build, dir string, flags ...string) error {
	folders, err := g.folders(b, dir, flags...)
	if err != nil {
		return err
	}
	fmt.Fprintln(h, runtime.Version())
	for _, path := range append(folders, filepath.Join(g.root, "go.mod"), filepath.Join(g.root, "go.sum")) {
		if err := hashTree(h, g.root, path, false); err != nil {
			return err
		}
	}
	return nil
}

// code returns a hash of what the target and its dependencies in the module say, but for comments and
// layout. It is the same with every version of Go, and on every system.
func (g *toolchain) code(target string) (string, error) {
	folders, err := g.folders(plain, target)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	for _, folder := range folders {
		paths, err := filepath.Glob(filepath.Join(folder, "*.go"))
		if err != nil {
			return "", err
		}
		for _, path := range paths {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return "", err
			}
			writeTokens(h, text)
		}
	}
	return sum(h), nil
}

// writeTokens writes to h the tokens of a Go file; of comments, those that tell the compiler something.
func writeTokens(h io.Writer, text []byte) {
	files := token.NewFileSet()
	var s scanner.Scanner
	s.Init(files.AddFile("", files.Base(), len(text)), text, nil, scanner.ScanComments)
	for {
		_, tok, literal := s.Scan()
		switch {
		case tok == token.EOF:
			return
		case tok == token.COMMENT && !strings.HasPrefix(literal, "//go:"):
		case tok.IsLiteral(), tok == token.COMMENT:
			fmt.Fprintln(h, literal)
		default:
			fmt.Fprintln(h, tok)
		}
	}
}

// hashTree writes to h what is in path, a file or a folder: its Go files that
// are no tests or, if all, everything but prose, also below testdata.
func hashTree(h io.Writer, root, path string, all bool) error {
	return filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		switch {
		case p == path && d.IsDir():
			return nil
		case d.IsDir() && !(all && strings.Contains(p, "testdata")):
			return filepath.SkipDir // another package
		case d.IsDir(),
			strings.HasSuffix(name, ".md") && name != "CHECKS.md",
			p != path && !all && (!strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go")):
			return nil
		}
		text, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, p)
		fmt.Fprintln(h, rel, len(text))
		h.Write(text)
		return err
	})
}

func sum(h interface{ Sum([]byte) []byte }) string { return hex.EncodeToString(h.Sum(nil)[:16]) }
