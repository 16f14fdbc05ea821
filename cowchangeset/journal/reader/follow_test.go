package reader_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchfree/latchfree/cowchangeset/journal"
	"github.com/latchfree/latchfree/cowchangeset/journal/reader"
	"github.com/latchfree/latchfree/internal/folder"
	"github.com/latchfree/latchfree/internal/tools/journaltest"
)

// followed runs f beside a Follow, in a bubble. What f returns must be what it has
// yielded by then; next returns after all that can be seen was.
func followed(t *testing.T, m folder.Folder, after int, f func(next func() []reader.Event[any], failed func() error)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r, err := journaltest.Reader[any](m, reader.Options{PollInterval: time.Second})
		must(t, err)
		var seen []reader.Event[any]
		var failure error
		ctx, cancel := context.WithCancelCause(background)
		done := make(chan struct{})
		go func() {
			defer close(done)
			for e, err := range r.Follow(ctx, after) {
				if failure = err; err == nil {
					seen = append(seen, e)
				}
			}
		}()
		f(func() []reader.Event[any] {
			time.Sleep(1500 * time.Millisecond)
			synctest.Wait()
			was := seen
			seen = nil
			return was
		}, func() error {
			time.Sleep(time.Minute)
			synctest.Wait()
			return failure
		})
		cancel(errBoom)
		<-done
		if failure == nil {
			t.Error("it has ended without an error")
		}
	})
}

// Follow sees each line once, when it is there, across segments and prunes.
func TestFollow(t *testing.T) {
	m := &memory{}
	j, err := journaltest.Open[any](m, journal.Options{SegmentSize: 500})
	must(t, err)
	followed(t, m, 0, func(next func() []reader.Event[any], failed func() error) {
		equal(t, len(next()), 1)
		line := 1
		shows := func(call func() error) {
			t.Helper()
			must(t, call())
			events := next()
			if len(events) == 0 || events[0].Line != line+1 || events[len(events)-1].Line != j.Hash().Line {
				t.Fatalf("after line %d: %+v", line, events)
			}
			equal(t, events[len(events)-1].Anchor(), j.Hash())
			line = j.Hash().Line
		}
		for _, s := range story() {
			shows(func() error { return s.Call(j) })
		}
		shows(func() error { return j.Prune(background, 3) })
		shows(func() error { return j.Rotate(background) })
		equal(t, len(next()), 0)
		equal(t, failed(), nil)
		must(t, j.Close())
	})
	if !m.Closed() {
		t.Error("a file is still open")
	}
	if m.Count("remove") == 0 {
		t.Error("nothing was dropped")
	}
}

// A line that is not whole is waited for, and may become another one.
func TestFollowHalfLines(t *testing.T) {
	text, ends, _ := storyFile(t)
	m := holding(text[:ends[1]])
	followed(t, m, 1, func(next func() []reader.Event[any], failed func() error) {
		equal(t, len(next()), 1)
		for n := ends[1] + 1; n < ends[2]; n += 40 {
			m.Put(1, text[:n])
			equal(t, len(next()), 0)
		}
		m.Put(1, text[:ends[2]-1])
		equal(t, len(next()), 0) // its newline is missing
		m.Put(1, slices.Concat(text[:ends[1]], []byte("garbage")))
		equal(t, len(next()), 0)
		zeroed := slices.Clone(text[:ends[2]])
		clear(zeroed[ends[1]+5 : ends[2]-5])
		for range 6 {
			m.Put(1, zeroed)
			equal(t, len(next()), 0)
			m.Put(1, text[:ends[1]+9])
			equal(t, len(next()), 0)
		}
		m.Put(1, text)
		equal(t, len(next()), len(ends)-2)
		equal(t, failed(), nil)
	})
}

// A line that was seen may be without its newline, and is none that was taken back.
func TestFollowAfterHalfLine(t *testing.T) {
	text, ends, _ := storyFile(t)
	m := holding(text[:ends[2]-1])
	equal(t, len(journaltest.Collect(t, readerOf(t, m).Events(background, 2))), 1)
	followed(t, m, 3, func(next func() []reader.Event[any], failed func() error) {
		equal(t, len(next()), 0)
		m.Put(1, text[:ends[3]])
		equal(t, len(next()), 1)
		equal(t, failed(), nil)
	})
}

// halfHeader returns three segments of which the last has nothing but a header without its newline,
// and all of that segment.
func halfHeader(t *testing.T) (m *memory, text []byte, header int) {
	m, _ = three(t)
	text = slices.Clone(m.Segment(3).Data)
	header = bytes.IndexByte(text, '\n')
	m.Put(3, text[:header])
	return m, text, header
}

// A header that Events has counted may be without its newline, and is none that was taken back.
func TestFollowAfterHalfHeader(t *testing.T) {
	m, text, header := halfHeader(t)
	events := journaltest.Collect(t, readerOf(t, m).Events(background, 0))
	followed(t, m, events[len(events)-1].Line, func(next func() []reader.Event[any], failed func() error) {
		equal(t, len(next()), 0)
		m.Put(3, text[:header+1])
		equal(t, len(next()), 0)
		m.Put(3, text)
		equal(t, len(next()), bytes.Count(text, []byte("\n"))-1)
		equal(t, failed(), nil)
	})
}

// Where a newline would not help, Follow ends with the error of Open.
func TestFollowDamageBesideAHalfHeader(t *testing.T) {
	for name, damage := range map[string]func(m *memory, text []byte, header int){
		"its newline": func(m *memory, text []byte, header int) { m.Put(3, append(slices.Clone(text[:header]), "XYZ"...)) },
		"its number": func(m *memory, text []byte, header int) {
			m.Put(4, text[:header])
			m.Delete(journaltest.SegmentName(3))
		},
		"another's":         func(m *memory, text []byte, header int) { m.Put(3, text[:header-9]) },
		"a missing segment": func(m *memory, text []byte, header int) { m.Delete(journaltest.SegmentName(1)) },
	} {
		t.Run(name, func(t *testing.T) {
			m, text, header := halfHeader(t)
			damage(m, text, header)
			_, want := journaltest.Open[any](m.Clone(), journal.Options{})
			if corrupt := (*journal.CorruptError)(nil); !errors.As(want, &corrupt) {
				t.Fatalf("Open: %v", want)
			}
			followed(t, m, 0, func(next func() []reader.Event[any], failed func() error) {
				next()
				equal(t, failed(), want)
			})
		})
	}
}

// Damage stays.
func TestFollowDamage(t *testing.T) {
	text, ends, _ := storyFile(t)
	bad := slices.Clone(text)
	bad[ends[4]+9] ^= 1
	followed(t, holding(bad), 0, func(next func() []reader.Event[any], failed func() error) {
		equal(t, len(next()), 5)
		var corrupt *journal.CorruptError
		if err := failed(); !errors.As(err, &corrupt) || corrupt.Line != 6 || corrupt.Offset != int64(ends[4]) {
			t.Error(err)
		}
	})
}

// Lines that are taken back are told, however the file looks then.
func TestFollowRewound(t *testing.T) {
	text, ends, _ := storyFile(t)
	other := &memory{}
	j := on(t, other)
	tell(t, j, story()[:3])
	tell(t, on(t, other), []step{add("A", item(8, strings.Repeat("x", len(text))))})
	for what, now := range map[string][]byte{"shorter": text[:ends[5]], "other lines": other.Text(), "within a line": text[:ends[6]-1]} {
		t.Run(what, func(t *testing.T) {
			m := holding(text[:ends[6]])
			followed(t, m, 0, func(next func() []reader.Event[any], failed func() error) {
				equal(t, len(next()), 7)
				m.Put(1, now)
				equal(t, failed(), reader.ErrRewound)
			})
		})
	}
	m, _ := prunedStory(t)
	followed(t, m, 0, func(next func() []reader.Event[any], failed func() error) {
		next()
		m.Delete(slices.Max(m.Segments()))
		equal(t, failed(), reader.ErrRewound)
	})
	followed(t, holding(text), len(ends)+1, func(next func() []reader.Event[any], failed func() error) {
		equal(t, failed(), reader.ErrRewound)
	})
}

// Follow that comes too late for a segment says so; if it has read all of it, it
// goes on.
func TestFollowDropped(t *testing.T) {
	for _, missed := range []int{0, 1, 2} {
		m := &memory{}
		j := on(t, m)
		tell(t, j, []step{start("A", 1, ""), seal("A", 0, 0)})
		followed(t, m, 0, func(next func() []reader.Event[any], failed func() error) {
			equal(t, len(next()), 3)
			if missed > 0 {
				must(t, applied("A", 1).Call(j))
			}
			if missed > 1 {
				must(t, j.Rotate(background))
				must(t, applied("A", 2).Call(j))
			}
			must(t, j.Rotate(background))
			if missed == 0 {
				// Only the header of the next segment is new when the first one goes.
				m.Delete(journaltest.SegmentName(1))
				equal(t, len(next()), 1)
				return
			}
			for n := range missed {
				m.Delete(journaltest.SegmentName(n + 1))
			}
			equal(t, failed(), journal.ErrDropped)
		})
	}
}
