package registry

import (
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
)

var (
	errForeignKey = errors.New("registry: no key of a registry has this spelling")
	errSpelling   = errors.New("registry: Config.Normalize changes the key")
	errGoexit     = errors.New("registry: a function called runtime.Goexit")
)

// change is what a message does to its key.
type change[V any] struct {
	held    held[V] // its value is zero unless the key is present after it
	gone    bool
	expired bool
	end     int64 // when the key expires by its own time to live, in ns of the bucket's time; 0 if it does not
	err     error // why the value is foreign; nil if it is not
}

// take brings a delivery into the mirror.
func (r *Registry[K, V]) take(a *attachment[K, V], m *nats.Msg, seq uint64, stamp, end int64) {
	name, ok := strings.CutPrefix(m.Subject, r.prefix)
	if !ok {
		return
	}
	if strings.HasPrefix(name, syncPrefix) {
		if a.listing == nil { // it may be old otherwise
			r.sharing.offered(m.Header.Get(offerHeader))
		}
		return
	}
	gone, expired := marker(m.Header)
	k, err := r.keyOf(name)
	if err != nil {
		r.foreignKey(a, name, seq, gone, err)
		return
	}
	read := func() change[V] {
		c := r.read(m.Data, seq, stamp, gone, expired)
		c.end = end
		return c
	}
	l := a.listing
	if l == nil {
		r.apply(k, read(), name)
	} else {
		if !l.first {
			l.seen[k] = struct{}{}
		}
		switch now := r.known(k); {
		case now.revision == seq && now.stamp == stamp:
			delete(l.aside, k)
		case seq > max(l.floor, now.revision): // a listing that was cut short may have brought the key past floor
			delete(l.aside, k)
			r.apply(k, read(), name)
		case gone && now.revision == 0: // deleted here, too, and forgotten
			delete(l.aside, k)
		default: // the consumer may be behind the mirror, or the bucket may have been restored
			l.aside[k] = read()
			return
		}
	}
	r.calls.delivered(k, seq, func() string { return m.Header.Get(nats.MsgIdHdr) })
}

// keyOf returns the key of a name in the bucket, or why it is none.
func (r *Registry[K, V]) keyOf(name string) (k K, err error) {
	text, ok := decodeKey(name)
	if !ok {
		return k, errForeignKey
	}
	k = K(text)
	if r.config.Normalize == nil {
		return k, nil
	}
	err = r.guard(func() error {
		norm, err := r.config.Normalize(k)
		if err == nil && norm != k {
			err = errSpelling
		}
		return err
	})
	return k, err
}

// marker reports whether a message with such a header says that its key is gone, and
// whether that is because its time to live was over.
func marker(h nats.Header) (gone, expired bool) {
	if len(h) == 0 {
		return false, false
	}
	switch h.Get("KV-Operation") {
	case "DEL", "PURGE":
		return true, false
	}
	switch h.Get("Nats-Marker-Reason") {
	case "MaxAge":
		return true, true
	case "Purge", "Remove":
		return true, false
	}
	return false, false
}

// read returns what a message does to its key.
func (r *Registry[K, V]) read(data []byte, seq uint64, stamp int64, gone, expired bool) change[V] {
	c := change[V]{held: held[V]{Version: Version(seq), Stamp: stamp}, gone: gone, expired: expired}
	if !gone {
		c.err = r.guard(func() (err error) {
			c.held.Value, err = r.config.Codec.Decode(data)
			return err
		})
	}
	return c
}

// guard runs a function of the caller. It returns the function's error, or one that says how else it has ended. The
// first that calls runtime.Goexit ends the goroutine of the mirror, which begins again on another one. From then on
// each function has a goroutine of its own.
func (r *Registry[K, V]) guard(f func() error) error {
	if !r.mirror.careful {
		return recovered(f)
	}
	err, done := errGoexit, make(chan struct{})
	go func() {
		defer close(done)
		err = recovered(f)
	}()
	<-done
	return err
}

// recovered returns the error of f, or one that says that it has panicked.
func recovered(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("registry: a function panicked: %v", v)
		}
	}()
	return f()
}

// apply makes the mirror show a change of k, whose name in the bucket is given.
func (r *Registry[K, V]) apply(k K, c change[V], name string) {
	if !c.gone && c.err == nil {
		if c.end != 0 { // known before the change is shown
			r.ends.Store(K(strings.Clone(string(k))), end{uint64(c.held.Version), c.end})
		} else {
			r.ends.Delete(k)
		}
		// A function of Config.Indexes may panic in Put, which has changed nothing then.
		c.err = r.guard(func() error {
			stored := k
			if r.inner.Peek(k) == nil { // else the registry keeps the key that it has
				stored = K(strings.Clone(string(k))) // without the bucket's name before it
			}
			_, err := r.inner.Put(stored, c.held)
			return err
		})
		if c.err == nil {
			r.tombs.remove(k)
			return
		}
	}
	r.ends.Delete(k) // a marker has a time to live of its own
	// The tomb comes first, so that a loop that sees the deletion finds its revision.
	r.tombs.set(k, tomb{
		revision: uint64(c.held.Version), expect: uint64(c.held.Version), stamp: c.held.Stamp,
		expired: c.expired, foreign: !c.gone,
	})
	r.inner.Delete(k)
	if !c.gone {
		r.report(Foreign{Key: name, Revision: c.held.Version, Err: c.err})
	}
}

// report tells Config.OnForeign.
func (r *Registry[K, V]) report(f Foreign) {
	if r.config.OnForeign != nil {
		_ = r.guard(func() error { r.config.OnForeign(f); return nil })
	}
}

// foreignKey notes a key of the bucket that is none of the registry's.
func (r *Registry[K, V]) foreignKey(a *attachment[K, V], name string, seq uint64, gone bool, why error) {
	had := r.mirror.foreign[name]
	note := func(keys map[string]uint64) {
		if keys[name] = seq; gone {
			delete(keys, name)
		}
	}
	note(r.mirror.foreign)
	if a.listing != nil {
		note(a.listing.foreign)
	}
	r.mirror.foreignKeys.Store(uint64(len(r.mirror.foreign)))
	if !gone && had != seq {
		r.report(Foreign{Key: name, Revision: Version(seq), Err: why})
	}
}

// complete ends a listing that a beat has proved exact at a revision.
func (r *Registry[K, V]) complete(l *listing[K, V], revision uint64) {
	if l.changed || len(l.aside) > 0 || !l.first && revision <= l.floor {
		r.mirror.resets.Add(1)
	}
	for k, c := range l.aside {
		name, _ := encodeKey(string(k))
		r.apply(k, c, name)
	}
	if !l.first {
		listed := func(k K) bool { _, ok := l.seen[k]; return ok }
		r.tombs.unlisted(listed)
		for k := range r.inner.All() {
			if !listed(k) {
				r.tombs.set(k, tomb{revision: revision})
				r.ends.Delete(k)
				r.inner.Delete(k)
			}
		}
	}
	r.mirror.created = l.created
	r.mirror.foreign = l.foreign
	r.mirror.foreignKeys.Store(uint64(len(l.foreign)))
	r.mirror.shown.Store(r.mirror.position.Load())
	r.calls.recheck(r.caught)
}

// state is what the mirror knows of a key.
type state[V any] struct {
	value    V
	revision uint64 // 0 if it knows nothing
	expect   uint64 // the revision that a write must expect
	stamp    int64
	present  bool
	foreign  bool
}

// known returns what the mirror knows of k.
func (r *Registry[K, V]) known(k K) (s state[V]) {
	// The tomb is read first: one that is set later belongs to a later revision, and
	// between the two a key may be in both.
	b, ok := r.tombs.get(k)
	h, present := r.inner.Get(k)
	switch {
	case present && (!ok || uint64(h.Version) > b.revision):
		return state[V]{value: h.Value, revision: uint64(h.Version), expect: uint64(h.Version), stamp: h.Stamp, present: true}
	case ok:
		return state[V]{revision: b.revision, expect: b.expect, stamp: b.stamp, foreign: b.foreign}
	}
	return s
}

// caught reports whether the mirror has a revision of k.
func (r *Registry[K, V]) caught(k K, revision uint64) bool {
	s := r.known(k)
	return s.revision >= revision || s.revision == 0 && r.mirror.shown.Load() >= revision
}
