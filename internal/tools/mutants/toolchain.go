package main

import (
	"bytes"
	"cmp"
	"debug/elf"
	"debug/macho"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A toolchain builds mutants, in a copy of the module, so that the source may
// be edited meanwhile.
type toolchain struct {
	home string // of the module
	root string // of the copy
	temp string // holds it

	// cache is where builds are kept without mutants; "": the user's cache.
	// With mutants they are kept in a fork of it, or "", until the campaign
	// ends: programs are large, and none is built twice.
	cache, fork string

	// flags are of every build.
	flags []string
}

func newToolchain(cache string) (*toolchain, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		return nil, fmt.Errorf("the module %s is not here: %w", module, err)
	}
	temp, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return nil, err
	}
	g := &toolchain{home: strings.TrimSpace(string(out)), root: filepath.Join(temp, "src"), temp: temp, cache: cache}
	g.flags = []string{"-trimpath"} // so that the next copy, elsewhere, finds what was built of this one
	return g, copyModule(g.home, g.root)
}

// commit names the commit that the module is at.
func (g *toolchain) commit() string {
	out, err := exec.Command("git", "-C", g.home, "describe", "--always", "--dirty", "--exclude=*").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}

func (g *toolchain) close() {
	os.RemoveAll(g.temp)
	g.join()
}

// copyModule copies what the packages of the module at from are built of.
func copyModule(from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if !d.IsDir() {
			if !d.Type().IsRegular() {
				return nil
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(to, rel), text, 0o666)
		}
		if _, err := os.Stat(filepath.Join(path, "go.mod")); rel != "." && (err == nil || d.Name() == ".git") {
			return filepath.SkipDir
		}
		return os.MkdirAll(filepath.Join(to, rel), 0o777)
	})
}

// run runs the go command in the copy.
func (g *toolchain) run(args ...string) ([]byte, error) {
	cmd := exec.Command("go", args...)
	cmd.Dir = g.root
	cmd.Env = append(os.Environ(), "GOWORK=off")
	if cache := cmp.Or(g.fork, g.cache); cache != "" {
		cmd.Env = append(cmd.Env, "GOCACHE="+cache)
	}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, errs.Bytes())
	}
	return out.Bytes(), nil
}

// A build is a way to build tests.
type build struct {
	name  string
	flags []string
}

// test builds the tests of the package in dir, with an overlay if there is one.
// Slot keeps the files apart that are built at the same time.
func (g *toolchain) test(b build, dir, slot, overlay string) (binary string, err error) {
	binary = filepath.Join(g.temp, slot+"-"+b.name+"-"+strings.ReplaceAll(dir, "/", "-")+".test")
	args := append([]string{"test", "-c", "-vet=off", "-gcflags=-dwarf=false", "-ldflags=-s -w", "-o", binary}, slices.Concat(g.flags, b.flags)...)
	if overlay != "" {
		args = append(args, "-overlay", overlay)
	}
	_, err = g.run(append(args, "./"+dir)...)
	return binary, err
}

// overlay writes files that are to be built in place of those of the target,
// and returns the name of the file that tells the go command so.
func (g *toolchain) overlay(slot string, files map[*source][]byte) (path string, err error) {
	replace := map[string]string{}
	for s, text := range files {
		replace[s.path] = filepath.Join(g.temp, slot+"-"+s.name())
		if err := os.WriteFile(replace[s.path], text, 0o666); err != nil {
			return "", err
		}
	}
	text, err := json.Marshal(map[string]map[string]string{"Replace": replace})
	if err != nil {
		return "", err
	}
	path = filepath.Join(g.temp, slot+".json")
	return path, os.WriteFile(path, text, 0o666)
}

// split makes the fork of the cache.
func (g *toolchain) split() (err error) {
	if g.cache == "" {
		return nil
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(g.cache), "fork*")); err == nil {
		for _, dir := range left { // by campaigns that were killed
			if info, err := os.Stat(dir); err == nil && time.Since(info.ModTime()) > 48*time.Hour {
				os.RemoveAll(dir)
			}
		}
	}
	if g.fork, err = os.MkdirTemp(filepath.Dir(g.cache), "fork"); err != nil {
		return err
	}
	return filepath.WalkDir(g.cache, func(path string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(g.cache, path) // it is below
		switch to := filepath.Join(g.fork, rel); {
		case err != nil || rel == ".":
			return err
		case d.IsDir():
			return os.Mkdir(to, 0o777)
		default:
			if err := os.Link(path, to); err != nil && !os.IsNotExist(err) { // another campaign's build replaced it
				return err
			}
			return nil
		}
	})
}

// prune removes from the fork what mutants left there, but for what is so new
// that a build could be about to use it.
func (g *toolchain) prune() {
	if g.fork == "" {
		return
	}
	filepath.WalkDir(g.fork, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		rel, _ := filepath.Rel(g.fork, path) // it is below
		info, err := d.Info()
		if err != nil || time.Since(info.ModTime()) < 2*time.Minute {
			return err
		}
		if _, err := os.Stat(filepath.Join(g.cache, rel)); os.IsNotExist(err) {
			return os.Remove(path)
		}
		return nil
	})
}

// join removes the fork.
func (g *toolchain) join() {
	if g.fork != "" {
		os.RemoveAll(g.fork)
		g.fork = ""
	}
}

var codeSeed = maphash.MakeSeed()

// code returns a hash of a program's machine code: programs that differ in
// nothing but where their lines are have the same. It returns 0 for a format
// that it does not know.
func code(binary string) uint64 {
	var text interface{ Data() ([]byte, error) } // a section
	if f, err := elf.Open(binary); err == nil {
		defer f.Close()
		if s := f.Section(".text"); s != nil {
			text = s
		}
	} else if f, err := macho.Open(binary); err == nil {
		defer f.Close()
		if s := f.Section("__text"); s != nil {
			text = s
		}
	}
	if text == nil {
		return 0
	}
	code, err := text.Data()
	if err != nil {
		return 0
	}
	return maphash.Bytes(codeSeed, code)
}
