//go:build !modelcheck

package histories_test

import "fmt"

// track is the state of a tracker. Only its last changeset may be open.
type track struct {
	ids    string // a byte for each changeset
	sealed bool   // the last one
	log    log    // of all
}

// log is entries in order, as places packed one after the other, so that it is
// immutable and can be compared.
type log string

// place is where an entry is. Seq may skip numbers.
type place struct{ ordinal, seq, entry int }

const packed = 5 // bytes

func (l log) add(p place) log {
	return l + log([]byte{byte(p.ordinal), byte(p.seq >> 8), byte(p.seq), byte(p.entry >> 8), byte(p.entry)})
}

func (l log) at(i int) place {
	b := l[packed*i:]
	return place{int(b[0]), int(b[1])<<8 | int(b[2]), int(b[3])<<8 | int(b[4])}
}

func (l log) len() int { return len(l) / packed }

// of returns the part that is one changeset's.
func (l log) of(ordinal int) log {
	from := 0
	for from < l.len() && l.at(from).ordinal < ordinal {
		from++
	}
	to := from
	for to < l.len() && l.at(to).ordinal == ordinal {
		to++
	}
	return l[packed*from : packed*to]
}

// String shows runs of consecutive entries as one: ordinal:seq=first…last.
func (l log) String() string {
	s := ""
	for i := 0; i < l.len(); {
		first, n := l.at(i), 0
		for i < l.len() && l.at(i) == (place{first.ordinal, first.seq + n, first.entry + n}) {
			i, n = i+1, n+1
		}
		s += fmt.Sprintf(" %d:%d=%d", first.ordinal, first.seq, first.entry)
		if n > 1 {
			s += fmt.Sprintf("…%d", first.entry+n-1)
		}
	}
	return "[" + s + " ]"
}

func (t track) String() string { return fmt.Sprint(len(t.ids), t.sealed, t.log) }

// trackerEvent is an operation of a tracker or of one of its changesets.
type trackerEvent struct {
	op      string
	on      int    // the changeset, by its ordinal; 0 stands for the tracker
	entry   int    // the first one recorded
	n       int    // how many
	outcome string // "recorded", "sealed", …
	at      place  // of the first one recorded, or of a changeset
	ids     string // returned, or the new changeset's
	read    log    // returned
	open    bool   // returned
}

func (e trackerEvent) Kind() string { return e.op + " " + e.outcome }

func (e trackerEvent) String() string {
	s := fmt.Sprintf("%s %s", e.op, e.outcome)
	if e.on != 0 {
		s = fmt.Sprintf("#%d.%s", e.on, s)
	}
	switch e.outcome {
	case "recorded":
		return fmt.Sprintf("%s %d at %d:%d, %d", s, e.entry, e.at.ordinal, e.at.seq, e.n)
	case "read":
		return fmt.Sprint(s, " ", e.read)
	case "started":
		return fmt.Sprintf("%s #%d, id %d", s, e.at.ordinal, e.ids[0])
	}
	switch e.op {
	case "Len":
		return fmt.Sprint(s, e.n)
	case "Current":
		return fmt.Sprintf("%s#%d, open: %v", s, e.at.ordinal, e.open)
	case "Sealed":
		return fmt.Sprintf("%s%v", s, !e.open)
	case "IDs":
		return fmt.Sprint(s, []byte(e.ids))
	}
	return s
}

func (e trackerEvent) After(t track) (track, bool) {
	last := len(t.ids)
	over := t.sealed || 0 < e.on && e.on < last // e's changeset takes no more entries
	switch e.outcome {
	case "recorded":
		return e.record(t)
	case "none":
		return t, last == 0
	case "sealed":
		return t, last > 0 && over
	case "started":
		ok := e.at.ordinal == last+1 && (e.op == "Start" || e.on == last)
		return track{t.ids + e.ids, false, t.log}, ok
	case "conflict":
		return t, e.on != last
	case "read":
		switch e.op {
		case "Seal":
			t.sealed = t.sealed || e.on == last
			return t, e.read == t.log.of(e.on)
		case "Entries":
			return t, e.read == t.log.of(e.on)
		case "Trail":
			return t, e.read == t.log
		}
	}
	switch e.op {
	case "Len":
		return t, e.n == t.log.of(e.on).len()
	case "Sealed":
		return t, e.open == !over
	case "Current":
		return t, e.at.ordinal == last && e.open == (last > 0 && !t.sealed)
	case "IDs":
		return t, e.ids == t.ids
	}
	panic(e.op)
}

// record is After for entries that were recorded. A changeset's entries take
// effect in the order of their numbers.
func (e trackerEvent) record(t track) (track, bool) {
	if t.sealed || e.at.ordinal != len(t.ids) || e.on != 0 && e.on != e.at.ordinal {
		return t, false
	}
	if before := t.log.of(e.at.ordinal); before.len() > 0 && before.at(before.len()-1).seq >= e.at.seq {
		return t, false
	}
	for i := range e.n {
		t.log = t.log.add(place{e.at.ordinal, e.at.seq + i, e.entry + i})
	}
	return t, true
}
