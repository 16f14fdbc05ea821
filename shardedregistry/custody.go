package shardedregistry

import (
	"fmt"

	"github.com/latchfree/latchfree/internal/table"
)

// custody is what Config.Clone and Config.Fingerprint ask for. A registry with
// neither has none. It is immutable but for prints.
type custody[K comparable, V any] struct {
	clone       func(V) V      // or nil
	fingerprint func(V) string // or nil

	// prints says what the present values of keys looked like when they were
	// stored. Nil without fingerprint. An imprint is replaced by those of later
	// versions only, and removed after its key was deleted.
	prints *table.Table[hkey[K], imprint]
}

// imprint is the fingerprint of what a key holds at one version. It is immutable.
type imprint struct {
	version Version
	text    string
}

// newCustody returns what config asks for, or nil.
func newCustody[K comparable, V any](config *Config[K, V]) *custody[K, V] {
	if config.Clone == nil && config.Fingerprint == nil {
		return nil
	}
	u := &custody[K, V]{clone: config.Clone, fingerprint: config.Fingerprint}
	if u.fingerprint != nil {
		u.prints = table.New[hkey[K], imprint](func(k hkey[K], _ uint64) uint64 { return k.Hash }, 0)
	}
	return u
}

// in returns what to store of a value that was given.
func (o *root[K, V]) in(value V) V {
	if o.custody == nil {
		return value
	}
	return copied(o.custody.clone, value)
}

// out returns what to hand out of rec, which k holds or held. It runs functions
// of the user's.
func (o *root[K, V]) out(k hkey[K], rec *record[V]) V {
	if o.custody == nil {
		return rec.value
	}
	o.custody.check(k, rec)
	return copied(o.custody.clone, rec.value)
}

// copied returns a clone of value, or value if clone is nil.
func copied[V any](clone func(V) V, value V) V {
	if clone == nil {
		return value
	}
	return clone(value)
}

// entry returns what to hand out of rec with its key and version.
func (o *root[K, V]) entry(k hkey[K], rec *record[V]) Entry[K, V] {
	return Entry[K, V]{k.Key, o.out(k, rec), rec.version()}
}

// check panics if rec, which k holds or held, has been changed behind the
// registry's back. It is called by everyone who is about to replace rec, after
// the user's function has run; and by everyone who has stored rec, when nothing
// is left to do that a panic would leave undone.
func (o *root[K, V]) check(k hkey[K], rec *record[V]) {
	if o.custody != nil {
		o.custody.check(k, rec)
	}
}

// check panics if rec's value is not what it was when it was first seen here.
// That is before anybody could change it who has it from the registry: values
// are handed out after a check. A dead record has no value: its key's
// imprint goes.
func (u *custody[K, V]) check(k hkey[K], rec *record[V]) {
	if u.fingerprint == nil {
		return
	}
	first := u.prints.Load(k)
	if rec.dead() {
		if first != nil && first.version < rec.version() {
			u.prints.CompareAndDelete(k, first)
		}
		return
	}
	now := &imprint{rec.version(), u.fingerprint(rec.value)}
	if first == nil || first.version < now.version {
		first = u.prints.Compute(k, func(first *imprint) *imprint {
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
