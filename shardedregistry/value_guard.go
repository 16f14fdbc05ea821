package shardedregistry

import (
	"fmt"

	"github.com/latchfree/latchfree/internal/table"
)

// valueGuard is what Config.Clone and Config.Fingerprint ask for. A registry with
// neither has none. It is immutable.
type valueGuard[K comparable] struct {
	clone any // func(V) V, perhaps nil
}

// verifier has the method of fingerprints that every store needs. Like a constrainer it
// is an interface that New alone puts something into.
type verifier[K comparable] interface {
	verify(k hkey[K], rec *record)
}

// fingerprints says what the present values of keys looked like when they were stored.
// It is immutable but for byKey.
type fingerprints[K comparable] struct {
	text func(*record) string // Config.Fingerprint of a value

	// A fingerprint is replaced by those of later versions only, and removed after
	// its key was deleted.
	byKey *table.Table[hkey[K], fingerprint]
}

// fingerprint is the fingerprint of what a key holds at one version. It is immutable.
type fingerprint struct {
	version Version
	text    string
}

// guard returns what c asks for, or nil.
func (c *Config[K, V]) guard() *valueGuard[K] {
	if c.Clone == nil && c.Fingerprint == nil {
		return nil
	}
	return &valueGuard[K]{clone: c.Clone}
}

// verifier returns what Fingerprint asks for, or nil.
func (c *Config[K, V]) verifier() verifier[K] {
	text := c.Fingerprint
	if text == nil {
		return nil
	}
	return newFingerprints[K](func(rec *record) string { return text(*valueOf[V](rec)) })
}

func newFingerprints[K comparable](text func(*record) string) *fingerprints[K] {
	return &fingerprints[K]{text, table.New[hkey[K], fingerprint](func(k hkey[K], _ uint64) uint64 { return k.Hash }, 0)}
}

// check panics if user code has changed the value of rec, which k holds or held. An
// operation calls it when it is about to replace rec, after the user's function has run;
// and when it has stored rec and nothing is left to do that a panic would leave undone.
func (rt *root[K]) check(k hkey[K], rec *record) {
	if rt.verifier != nil {
		rt.verifier.verify(k, rec)
	}
}

// verify panics if rec's value is not what it was when it was first seen here. That is
// before a caller can have it from the registry: values are handed out after a check. A
// dead record has no value: verify removes its key's fingerprint.
func (f *fingerprints[K]) verify(k hkey[K], rec *record) {
	first := f.byKey.Load(k)
	if rec.dead() {
		if first != nil && first.version < rec.version() {
			f.byKey.CompareAndDelete(k, first)
		}
		return
	}
	now := &fingerprint{rec.version(), f.text(rec)}
	if first == nil || first.version < now.version {
		first = f.byKey.Compute(k, func(first *fingerprint) *fingerprint {
			if first == nil || first.version < now.version {
				return now
			}
			return first
		})
	}
	if first.version == now.version && first.text != now.text {
		panic(fmt.Sprintf("shardedregistry: the value of %v at version %d was changed behind the registry's back: it was %s and is %s",
			k.Key, now.version, first.text, now.text))
	}
}
