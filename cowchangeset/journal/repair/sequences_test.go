package repair_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/latchfree/latchfree/cowchangeset/journal"
	"github.com/latchfree/latchfree/cowchangeset/journal/repair"
	"github.com/latchfree/latchfree/internal/folder/foldertest"
	"github.com/latchfree/latchfree/internal/tools/journaltest"
)

// A play is a journal on a disk that fails now and then, and what was acknowledged.
type play struct {
	t     *testing.T
	disk  *memory
	o     journal.Options
	j     *journal.Journal[any]
	now   []saved   // what all calls that returned nil say
	since [][]saved // with SyncNever: the states since the last fsync, up to now
	next  int       // for IDs and values
	trace []string  // what has happened
}

func (p *play) say(what string, args ...any) {
	p.trace = append(p.trace, fmt.Sprintf(what, args...))
}

func (p *play) fatal(what string, args ...any) {
	p.t.Helper()
	p.t.Fatalf("%s\n%s\nacknowledged: %+v", fmt.Sprintf(what, args...), strings.Join(p.trace, "\n"), strings.ReplaceAll(fmt.Sprintf("%+v", p.now), "vvvvv", ""))
}

// call returns a random call that the journal must accept.
func (p *play) call() step {
	latest, previous := header{}, ""
	if n := len(p.now); n > 0 {
		latest = p.now[n-1].Header
	}
	pick := func(wanted func(saved) bool) (saved, bool) {
		some := slices.DeleteFunc(slices.Clone(p.now), func(s saved) bool { return !wanted(s) })
		if len(some) == 0 {
			return saved{}, false
		}
		return some[rand.IntN(len(some))], true
	}
	for {
		switch rand.IntN(10) {
		case 0, 1:
			p.next++
			previous = latest.ID
			return start(fmt.Sprint("c", p.next), latest.Ordinal+1, previous)
		case 2, 3, 4:
			if s, ok := pick(func(s saved) bool { return !s.Sealed }); ok {
				seq := uint64(rand.IntN(3))
				if n := len(s.Entries); n > 0 {
					seq += s.Entries[n-1].Seq + 1
				}
				var es []entry
				for range 1 + rand.IntN(3) {
					p.next++
					es = append(es, item(seq, fmt.Sprint(p.next, strings.Repeat("v", rand.IntN(300)))))
					seq += 1 + uint64(rand.IntN(2))
				}
				return add(s.ID, es...)
			}
		case 5:
			if s, ok := pick(func(s saved) bool { return !s.Sealed }); ok {
				last := uint64(0)
				if n := len(s.Entries); n > 0 {
					last = s.Entries[n-1].Seq
				}
				return seal(s.ID, len(s.Entries), last)
			}
		case 6:
			if s, ok := pick(func(s saved) bool { return s.Sealed && !s.Aborted && s.Applied != whole }); ok {
				if rand.IntN(3) == 0 {
					return abort(s.ID, "why")
				}
				return applied(s.ID, []uint64{s.Applied + 1, whole}[rand.IntN(2)])
			}
		case 7:
			i := slices.IndexFunc(p.now, func(s saved) bool { return !s.Sealed })
			if i < 0 {
				i = len(p.now) - 1
			}
			if i > 0 {
				return prune(p.now[rand.IntN(i)+1].Ordinal)
			}
		case 8:
			if rand.IntN(4) > 0 { // it takes a millisecond
				continue
			}
			return step{Name: "compress", Call: func(j *journal.Journal[any]) error { return j.Compress(background) }, Then: func(all []saved) []saved { return all }}
		case 9:
			return step{Name: "rotate", Call: func(j *journal.Journal[any]) error { return j.Rotate(background) }, Then: func(all []saved) []saved { return all }}
		}
	}
}

// fail makes one of the next operations of the disk fail, once; perhaps that which is to
// remove what a failed write has left fails too.
func (p *play) fail() {
	n, done, short, also := rand.IntN(6), rand.IntN(400), rand.IntN(3) == 0, rand.IntN(4) == 0
	p.say("operation %d fails, after %d bytes, short %v; truncate too: %v", n, done, short, also)
	failed := false
	p.disk.Fault = func(op string) (int, error) {
		if op == "check" {
			return 0, nil
		}
		n--
		switch {
		case n == -1 && op == "write" && short:
			failed = true
			return done, foldertest.ErrShort
		case n == -1:
			failed = true
			return done, errBoom
		case failed && also && op == "truncate":
			also = false
			return 0, errBoom
		}
		return 1 << 30, nil
	}
}

// planned reports whether an error is that of a disk that was made to fail.
func planned(err error) bool {
	return errors.Is(err, errBoom) || strings.Contains(err.Error(), "short write")
}

// is returns which of some states the journal has; -1 if none of them.
func (p *play) is(states ...[]saved) int {
	got, err := journaltest.Everything(p.j)
	if err != nil {
		p.fatal("load: %v", err)
	}
	got = unnamed(slices.Clone(got))
	for i, want := range states {
		if len(got) == 0 && len(want) == 0 || reflect.DeepEqual(got, unnamed(slices.Clone(want))) {
			return i
		}
	}
	p.say("found: %+v", got)
	return -1
}

// open opens the journal on what a disk has. It has one of some states.
func (p *play) open(disk *memory, states ...[]saved) {
	p.disk = disk
	j, err := journaltest.Open[any](disk, p.o)
	for n := 0; err != nil && errors.Is(err, errBoom) && n < 3; n++ { // a fault that was armed
		j, err = journaltest.Open[any](disk, p.o)
	}
	if corrupt := new(journal.CorruptError); errors.As(err, &corrupt) {
		p.say("open: %v", err)
		if _, err := repair.RepairOn(disk); err != nil {
			p.fatal("repair: %v", err)
		}
		j, err = journaltest.Open[any](disk, p.o)
	}
	if err != nil {
		p.fatal("open: %v", err)
	}
	p.j = j
	i := p.is(states...)
	if i < 0 {
		p.fatal("the journal has none of the states that it may have")
	}
	p.now = states[i]
	p.since = [][]saved{p.now}
}

func (p *play) one() {
	switch rand.IntN(12) {
	case 0:
		p.say("close")
		if err := p.j.Close(); err != nil && !errors.Is(err, errBoom) {
			p.fatal("close: %v", err)
		}
		p.disk.Fault = nil
		p.open(p.disk, p.now)
		return
	case 1:
		p.say("kill")
		p.disk.Fault = nil
		p.open(p.disk, p.now)
		return
	case 2:
		p.say("power loss")
		states := [][]saved{p.now}
		if p.o.Sync == journal.SyncNever {
			states = p.since
		}
		p.open(p.disk.Crash(), states...)
		return
	case 3, 4:
		p.fail()
	}
	c := p.call()
	p.say("%s", c.Name)
	after := c.Then(p.now)
	err := c.Call(p.j)
	pruned := strings.HasPrefix(c.Name, "prune")
	if err != nil {
		p.say("  %v", err)
	}
	switch {
	case err == nil:
		p.now = after
		p.since = append(p.since, after)
		if p.o.Sync == journal.SyncAlways {
			p.since = p.since[len(p.since)-1:]
		}
		if rand.IntN(6) == 0 {
			p.say("again")
			if err := c.Call(p.j); errors.Is(err, journal.ErrBroken) {
				p.disk.Fault = nil
				p.open(p.disk, p.now)
			} else if err != nil && !planned(err) {
				p.fatal("again: %v", err)
			}
		}
	case errors.Is(err, journal.ErrBroken):
		p.disk.Fault = nil
		p.open(p.disk, p.now, after)
	case !planned(err):
		p.fatal("%v", err)
	case pruned && p.is(p.now, after) == 1: // though its segments could not be removed
		p.now = after
		p.since = append(p.since, after)
	default: // a power loss may bring back what was written and removed
		p.since = append(p.since, after, p.now)
	}
	p.disk.Fault = nil
	if p.is(p.now) < 0 {
		p.fatal("the journal has something else")
	}
	if rand.IntN(5) == 0 {
		p.say("sync")
		must(p.t, p.j.Sync(background))
		p.since = [][]saved{p.now}
	}
}

// What was acknowledged is there, and nothing else, whatever calls come, whatever the disk
// refuses, and however often the process or the machine ends: but for the call that
// has broken the journal, and with SyncNever for the last calls before a power loss.
func TestSequencesAndFaults(t *testing.T) {
	attempts := 300
	if testing.Short() {
		attempts = 40
	}
	for attempt := range attempts {
		p := &play{t: t, o: journal.Options{SegmentSize: int64(300 + rand.IntN(2000)), Sync: journal.SyncPolicy(attempt % 2)}}
		p.say("%+v", p.o)
		p.open(&memory{}, nil)
		for range 40 {
			p.one()
		}
		if report, err := verify(p.disk, journal.Anchor{}); err != nil || report.Torn > 0 {
			p.fatal("%+v, %v", report, err)
		}
		var read []saved
		for s, err := range readerOf(t, p.disk).Changesets(background) {
			if err != nil {
				p.fatal("reader: %v", err)
			}
			read = append(read, s)
		}
		if len(read) > 0 || len(p.now) > 0 {
			equal(t, unnamed(read), unnamed(slices.Clone(p.now)))
		}
	}
}
