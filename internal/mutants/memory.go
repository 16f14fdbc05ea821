package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
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

// memory is what became of mutants in earlier campaigns. A verdict holds as
// long as the mutant and all that was run on it are what they were, to the
// byte: a campaign that was interrupted goes on where it was.
type memory struct {
	mu     sync.Mutex
	file   *os.File // one verdict a line; nil: nothing is kept
	fates  map[string]remembered
	hashes map[string]string // of what builds are made of, by build and folder
}

// remembered is a verdict without the output.
type remembered struct {
	Key   string // of the mutant and what was run on it
	What  string // the mutant, for people
	Fate  fate
	Layer string
	How   ending
	Test  string
	Took  time.Duration
}

// openMemory reads the verdicts in a file, and will append new ones.
func openMemory(path string) (*memory, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o666)
	if err != nil {
		return nil, err
	}
	m := &memory{file: f, fates: map[string]remembered{}, hashes: map[string]string{}}
	text, err := io.ReadAll(f)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	for line := range bytes.Lines(text) {
		var r remembered
		if json.Unmarshal(line, &r) == nil { // or it was cut off
			m.fates[r.Key] = r
		}
	}
	if !bytes.HasSuffix(text, []byte("\n")) {
		_, err = f.WriteString("\n")
	}
	return m, err
}

// recall returns what became of a mutant when the same was run on it.
func (c *campaign) recall(m *mutant) *verdict {
	if c.memory == nil || c.config.again {
		return nil
	}
	c.memory.mu.Lock()
	defer c.memory.mu.Unlock()
	// A test that killed it does so whatever others there are.
	for i := range c.baselines {
		if r, ok := c.memory.fates[identity(m, c.baselines[i:i+1])]; ok && r.Fate != lived && r.Fate != same {
			return r.verdict()
		}
	}
	if r, ok := c.memory.fates[identity(m, c.baselines)]; ok {
		return r.verdict()
	}
	return nil
}

func (r remembered) verdict() *verdict {
	return &verdict{fate: r.Fate, layer: r.Layer, result: result{how: r.How, test: r.Test}, took: r.Took, before: true}
}

// keep remembers v.
func (c *campaign) keep(m *mutant, v *verdict) error {
	if c.memory == nil || v.before {
		return nil
	}
	ran := c.baselines
	if i := slices.IndexFunc(ran, func(b *baseline) bool { return b.name == v.layer }); i >= 0 {
		ran = ran[i : i+1]
	}
	c.memory.mu.Lock()
	defer c.memory.mu.Unlock()
	r := remembered{identity(m, ran), c.target.dir + " " + m.key(), v.fate, v.layer, v.how, v.test, v.took}
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	c.memory.fates[r.Key] = r
	_, err = c.memory.file.Write(append(line, '\n'))
	return err
}

// identity names a mutant and all that is run on it.
func identity(m *mutant, ran []*baseline) string {
	h := sha256.New()
	fmt.Fprintln(h, m.source.name(), m.key())
	h.Write(m.text)
	for _, b := range ran {
		fmt.Fprintln(h, b.name, b.tests, b.args, b.env, b.inputs)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// inputs returns a hash of all that the tests in dir are made of and may read:
// the compiler's version, the sources of the module's packages that they need,
// and in their own folder whatever is no prose. Other modules' sources are
// those that go.sum names.
func (m *memory) inputs(g *toolchain, b build, dir string) (string, error) {
	id := b.name + " " + dir
	if sum, ok := m.hashes[id]; ok {
		return sum, nil
	}
	out, err := g.run(append(append([]string{"list", "-deps", "-test", "-f", "{{with .Module}}{{if .Main}}{{$.Dir}}{{end}}{{end}}"}, b.flags...), "./"+dir)...)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	fmt.Fprintln(h, runtime.Version())
	own := filepath.Join(g.root, filepath.FromSlash(dir))
	folders := strings.Fields(string(out))
	slices.Sort(folders)
	for _, path := range append([]string{"go.mod", "go.sum"}, slices.Compact(folders)...) {
		if !filepath.IsAbs(path) {
			path = filepath.Join(g.root, path)
		}
		if err := hashTree(h, g.root, path, path == own); err != nil {
			return "", err
		}
	}
	m.hashes[id] = hex.EncodeToString(h.Sum(nil)[:16])
	return m.hashes[id], nil
}

// hashTree writes to h what is in path, a file or a folder: its Go files that
// are no tests or, if all, everything below but prose.
func hashTree(h io.Writer, root, path string, all bool) error {
	return filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		name := d.Name()
		switch {
		case err != nil:
			return err
		case d.IsDir() && p != path && (!all || name != "testdata" && !strings.Contains(p, "testdata")):
			return filepath.SkipDir // another package
		case d.IsDir():
			return nil
		case strings.HasSuffix(name, ".md") && name != "CHECKS.md":
			return nil
		case p != path && !all && (!strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go")):
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
