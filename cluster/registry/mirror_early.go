package registry

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
)

// storedWrite is a message of this registry that the bucket has acknowledged: see "Early
// writes" in DESIGN.md.
type storedWrite struct {
	m        *nats.Msg // as it will be delivered
	revision uint64
	attached uint64 // mirror.attached before it was sent
}

// storedWrite returns m, which was sent, as it will be delivered. The call that has sent it
// may end while the mirror has it, and data belong to the caller then.
func (r *Registry[K, V]) storedWrite(m *nats.Msg, revision, attached uint64) storedWrite {
	subject := r.prefix + strings.TrimPrefix(m.Subject, r.publish)
	return storedWrite{&nats.Msg{Subject: subject, Data: bytes.Clone(m.Data), Header: m.Header}, revision, attached}
}

// earlyWrites are acknowledged writes of an attachment that are not delivered.
type earlyWrites struct {
	waiting map[uint64]*nats.Msg // by revision; the mirror lacks one before it
	shown   []storedWrite        // in the order of their revisions
}

// acknowledged shows a write, now or as soon as the mirror has come to the revision before.
func (r *Registry[K, V]) acknowledged(a *attachment[K, V], w storedWrite) {
	if a.listing != nil || w.revision <= r.mirror.position.Load() {
		return // it will be delivered, or was
	}
	if w.attached != r.mirror.attached.Load() {
		return // the bucket may have been restored since, and the revision be another message's
	}
	if a.early.waiting == nil {
		a.early.waiting = make(map[uint64]*nats.Msg)
	}
	a.early.waiting[w.revision] = w.m
	r.catchUp(a)
}

// catchUp shows the acknowledged writes that come next.
func (r *Registry[K, V]) catchUp(a *attachment[K, V]) {
	for e := &a.early; len(e.waiting) > 0; {
		next := r.mirror.position.Load() + 1
		m, ok := e.waiting[next]
		if !ok {
			return
		}
		delete(e.waiting, next)
		r.show(a, m, next, 0)
		m.Data = nil
		e.shown = append(e.shown, storedWrite{m: m, revision: next})
	}
}

// passed notes that a delivery has brought the mirror from one revision to another.
func (e *earlyWrites) passed(from, to uint64) {
	e.shown = e.shown[:0] // what was not delivered before will not be
	if to == from+1 {
		delete(e.waiting, to)
		return
	}
	for revision := range e.waiting {
		if revision <= to {
			delete(e.waiting, revision)
		}
	}
}

// confirm notes that a message is delivered that the mirror shows already. It fails if that
// was another one.
func (e *earlyWrites) confirm(m *nats.Msg, revision uint64) error {
	i := 0
	for i < len(e.shown) && e.shown[i].revision < revision { // overwritten before the consumer came to them
		i++
	}
	if i == len(e.shown) || e.shown[i].revision != revision {
		return errOther
	}
	own := e.shown[i].m
	e.shown = e.shown[i+1:]
	if own.Subject != m.Subject || own.Header.Get(nats.MsgIdHdr) != m.Header.Get(nats.MsgIdHdr) {
		return errOther
	}
	return nil
}

// stamp returns what tells a message from others that have had its revision before the bucket was
// restored: which call of this registry has sent it, as a negative number, or else when it
// was stored.
func (r *Registry[K, V]) stamp(h nats.Header, stored int64) int64 {
	id, ok := strings.CutPrefix(h.Get(nats.MsgIdHdr), r.id)
	if !ok || len(id) < 2 || id[0] != '.' {
		return stored
	}
	n, err := strconv.ParseInt(id[1:], 36, 64)
	if err != nil || n <= 0 {
		return stored
	}
	return -n
}
