//go:build !modelcheck

package cowchangeset_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"unicode/utf8"

	"github.com/latchfree/latchfree/cowchangeset"
)

func ordinals[E any](changesets iter.Seq[*cowchangeset.Changeset[E]]) (ns []uint64) {
	for c := range changesets {
		ns = append(ns, c.Ordinal())
	}
	return ns
}

// all returns the ordinals that All yields, each with its changeset.
func all[E any](t *testing.T, tracker *cowchangeset.Tracker[E]) (ns []uint64) {
	t.Helper()
	for n, c := range tracker.All() {
		if c.Ordinal() != n {
			t.Errorf("%d comes with changeset %d", n, c.Ordinal())
		}
		ns = append(ns, n)
	}
	return ns
}

// A loop over All has the changesets of its beginning, whatever happens meanwhile.
func TestAll(t *testing.T) {
	tracker, _ := kept(cowchangeset.Config[int]{})
	early := tracker.All()
	for range 4 {
		tracker.Start(t.Context())
	}
	if err := tracker.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	var ns []uint64
	for n := range early {
		if n == 1 {
			tracker.Start(t.Context())
			tracker.Flush(t.Context())
			tracker.Prune(1)
		}
		ns = append(ns, n)
	}
	if !slices.Equal(ns, []uint64{1, 2, 3, 4}) {
		t.Error(ns)
	}
	if got := all(t, tracker); !slices.Equal(got, []uint64{5}) {
		t.Error(got)
	}
	for range tracker.All() {
		break
	}
}

// A changeset that All yields is the latest or sealed, although a Start stalls.
func TestAllHelps(t *testing.T) {
	tracker, c := opened(t, 1)
	tracker.Announce("next")
	if got := all(t, tracker); !slices.Equal(got, []uint64{1, 2}) || !c.IsSealed() {
		t.Error(got, c.IsSealed())
	}
}

// Changesets are found by ID, ordinal and neighbour, and what was forgotten is not.
func TestFind(t *testing.T) {
	tracker, _ := kept(cowchangeset.Config[int]{})
	find := func() (ns []uint64) {
		for n := range uint64(7) {
			c, ok := tracker.ByOrdinal(n)
			if ok != (c != nil) || ok && c.Ordinal() != n {
				t.Error(n, c, ok)
			}
			id := ""
			if ok {
				ns, id = append(ns, n), c.ID()
			}
			if again, found := tracker.ByID(id); found != ok || again != c {
				t.Error(again, found)
			}
		}
		if got := all(t, tracker); !slices.Equal(got, ns) {
			t.Error(got, ns)
		}
		return ns
	}
	if got := find(); got != nil {
		t.Error(got)
	}
	for range 5 {
		tracker.Start(t.Context())
	}
	if got := find(); !slices.Equal(got, []uint64{1, 2, 3, 4, 5}) {
		t.Error(got)
	}
	first, _ := tracker.ByOrdinal(1)
	if err := tracker.Flush(t.Context()); err != nil || tracker.Prune(2) != 3 {
		t.Fatal(err)
	}
	if got := find(); !slices.Equal(got, []uint64{4, 5}) {
		t.Error(got)
	}
	var ns []uint64
	for c := first; c != nil; c = c.Next() { // which Prune takes away from nobody
		ns = append(ns, c.Ordinal())
	}
	if !slices.Equal(ns, []uint64{1, 2, 3, 4, 5}) {
		t.Error(ns)
	}
}

// Of changesets with the same ID the first is found.
func TestFindTheFirst(t *testing.T) {
	tracker := cowchangeset.MustNew(cowchangeset.Config[int]{NewID: func(context.Context) (string, error) { return "same", nil }})
	for range 3 {
		start(t, tracker)
	}
	if c, ok := tracker.ByID("same"); !ok || c.Ordinal() != 1 {
		t.Error(c, ok)
	}
}

// If a changeset has a next one, it is complete, although its Start stalls; and whoever
// looks at the tracker finds the entries recorded in the next one.
func TestNextHelps(t *testing.T) {
	tracker, c := opened(t, 1)
	if c.Next() != nil {
		t.Error("a successor of the latest")
	}
	announced := tracker.Announce("next")
	n := c.Next()
	if n != announced {
		t.Fatal(n)
	}
	if _, err := c.Record(2); err != cowchangeset.ErrSealed {
		t.Error(err)
	}
	n.Record(3)
	if got := tracker.Trail().Len(); got != 2 {
		t.Errorf("a trail of %d", got)
	}
}

// What is sealed and neither applied nor aborted is pending.
func TestPending(t *testing.T) {
	tracker, m := kept(cowchangeset.Config[int]{})
	if got := ordinals(tracker.Pending()); got != nil {
		t.Error(got)
	}
	var cs []*cowchangeset.Changeset[int]
	for v := range 7 {
		c, err := tracker.Start(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		tracker.Record(v)
		cs = append(cs, c)
	}
	succeeds := func(context.Context, final) error { return nil }
	cs[0].Apply(t.Context(), succeeds)
	cs[1].Abort(t.Context(), nil)
	cs[2].Apply(t.Context(), func(context.Context, final) error { return errDisk })
	cs[3].ApplyEach(t.Context(), func(context.Context, uint64, int) error { return nil })
	m.faults(failing("Applied"))
	cs[4].Apply(t.Context(), succeeds) // and the store does not know it
	m.faults(nil)
	if got := ordinals(tracker.Pending()); !slices.Equal(got, []uint64{3, 5, 6}) {
		t.Error(got)
	}
	for range tracker.Pending() {
		break
	}
	err := cs[5].Apply(t.Context(), func(context.Context, final) error {
		if got := ordinals(tracker.Pending()); !slices.Equal(got, []uint64{3, 5, 6}) {
			t.Error(got)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	// A service goes on with them, in order.
	again, err := cowchangeset.Resume(t.Context(), cowchangeset.Config[int]{Store: m})
	if err != nil {
		t.Fatal(err)
	}
	if got := ordinals(again.Pending()); !slices.Equal(got, []uint64{3, 5}) {
		t.Error(got)
	}
	for c := range again.Pending() {
		if err := c.Apply(t.Context(), succeeds); err != nil {
			t.Error(err)
		}
	}
	if got := ordinals(again.Pending()); got != nil {
		t.Error(got)
	}
	m.check(t)
}

// RecordContext is Record for a caller that does not wait for ever.
func TestRecordContext(t *testing.T) {
	type records = func(context.Context, int) (cowchangeset.Receipt, error)
	for method, of := range map[string]func(*cowchangeset.Tracker[int], *cowchangeset.Changeset[int]) records{
		"Tracker.RecordContext": func(tracker *cowchangeset.Tracker[int], _ *cowchangeset.Changeset[int]) records {
			return tracker.RecordContext
		},
		"Changeset.RecordContext": func(_ *cowchangeset.Tracker[int], c *cowchangeset.Changeset[int]) records { return c.RecordContext },
		"Tracker.RecordBatchContext": func(tracker *cowchangeset.Tracker[int], _ *cowchangeset.Changeset[int]) records {
			return func(ctx context.Context, e int) (cowchangeset.Receipt, error) {
				return tracker.RecordBatchContext(ctx, []int{e})
			}
		},
	} {
		t.Run(method, func(t *testing.T) {
			tracker, m := kept(cowchangeset.Config[int]{StoreTimeout: -1})
			c, _ := tracker.Start(t.Context())
			record := of(tracker, c)
			r, err := record(t.Context(), 1)
			if err != nil || r != (cowchangeset.Receipt{ChangesetID: "1", Ordinal: 1}) || c.Durable() != 1 {
				t.Error(r, err, c.Durable())
			}
			gate := make(chan struct{})
			ctx, cancel := context.WithCancelCause(t.Context())
			m.faults(func(_ context.Context, method, _ string) error {
				cancel(errEnded)
				<-gate
				return nil
			})
			r, err = record(ctx, 2)
			wantStoreError(t, err, "wait", errEnded)
			if r.Seq != 1 || c.Len() != 2 {
				t.Error(r, c.Len())
			}
			if r, err := record(ctx, 3); err != errEnded || r != (cowchangeset.Receipt{}) || c.Len() != 2 {
				t.Error(r, err, c.Len())
			}
			close(gate)
			if err := tracker.Flush(t.Context()); err != nil {
				t.Error(err)
			}
			wantValues(t, m, "1", 1, 2)
			c.Seal(t.Context())
			if _, err := record(t.Context(), 4); !errors.Is(err, cowchangeset.ErrSealed) {
				t.Error(err)
			}
			if p := panicOf(func() { record(nil, 5) }); p != "cowchangeset: "+method+" called with a nil context" {
				t.Error(p)
			}
			m.check(t)
		})
	}
}

// plans returns a tracker whose changesets are called plan-1 and so on.
func plans[E any]() *cowchangeset.Tracker[E] {
	var n atomic.Int64
	return cowchangeset.MustNew(cowchangeset.Config[E]{NewID: func(context.Context) (string, error) { return fmt.Sprint("plan-", n.Add(1)), nil }})
}

// mustStart starts n changesets.
func mustStart[E any](t *testing.T, tracker *cowchangeset.Tracker[E], n int) {
	t.Helper()
	for range n {
		if _, err := tracker.Start(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
}

// exported returns the lines of a tracker's trail.
func exported[E any](t *testing.T, tracker *cowchangeset.Tracker[E]) string {
	t.Helper()
	var lines strings.Builder
	if err := tracker.Trail().WriteJSONLines(&lines); err != nil {
		t.Error(err)
	}
	return lines.String()
}

func ExampleTrail_WriteJSONLines() {
	type change struct {
		Table string `json:"table"`
		Rows  int    `json:"rows,omitempty"`
	}
	tracker := plans[change]()
	ctx := context.Background()
	tracker.Start(ctx)
	tracker.Record(change{Table: "users"})
	tracker.Start(ctx)
	tracker.RecordBatch([]change{{"users", 2}, {"a \"b\"\n", 3}})

	var file bytes.Buffer
	if err := tracker.Trail().WriteJSONLines(&file); err != nil {
		fmt.Println(err)
	}
	fmt.Print(file.String())
	for e, err := range cowchangeset.ReadJSONLines[change](&file) {
		fmt.Println(e.ChangesetID, e.Seq, e.Value.Rows, err)
	}
	// Output:
	// {"changeset":"plan-1","ordinal":1,"seq":0,"value":{"table":"users"}}
	// {"changeset":"plan-2","ordinal":2,"seq":0,"value":{"table":"users","rows":2}}
	// {"changeset":"plan-2","ordinal":2,"seq":1,"value":{"table":"a \"b\"\n","rows":3}}
	// plan-1 0 0 <nil>
	// plan-2 0 2 <nil>
	// plan-2 1 3 <nil>
}

func TestJSONLinesOfNothing(t *testing.T) {
	tracker := plans[int]()
	for range 2 {
		if lines := exported(t, tracker); lines != "" {
			t.Errorf("got %q", lines)
		}
		mustStart(t, tracker, 1)
	}
	var zero cowchangeset.Trail[int]
	if err := zero.WriteJSONLines(brokenWriter{}); err != nil {
		t.Error(err)
	}
	if entries, err := imported[int](strings.NewReader("")); len(entries) != 0 || err != nil {
		t.Errorf("%v, %v", entries, err)
	}
}

func TestJSONLinesNil(t *testing.T) {
	for want, f := range map[string]func(){
		"cowchangeset: Trail.WriteJSONLines called with a nil writer": func() { cowchangeset.Trail[int]{}.WriteJSONLines(nil) },
		"cowchangeset: ReadJSONLines called with a nil reader":        func() { cowchangeset.ReadJSONLines[int](nil) },
	} {
		if p := mustPanic(t, f); p != want {
			t.Errorf("got %q, want %q", p, want)
		}
	}
}

// A value that prints itself over several lines is in one all the same.
func TestJSONLinesOfValues(t *testing.T) {
	tracker := plans[any]()
	mustStart(t, tracker, 1)
	tracker.RecordBatch([]any{nil, 1.5, map[string]any{"b": 1, "a": []int{}}, json.RawMessage("{\n \"x\": [1,\n2]\n}\n"), struct{}{}})
	const start = `{"changeset":"plan-1","ordinal":1,"seq":%d,"value":%s}` + "\n"
	want := ""
	for i, v := range []string{"null", "1.5", `{"a":[],"b":1}`, `{"x":[1,2]}`, "{}"} {
		want += fmt.Sprintf(start, i, v)
	}
	if got := exported(t, tracker); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// Writers, starters and exporters at once: each export begins with the one
// before, and the last has every entry at the place that its receipt names.
func TestStressJSONLines(t *testing.T) {
	const writers, each = 3, 300
	tracker := plans[[2]int]()
	mustStart(t, tracker, 1)
	var left, exports atomic.Int64
	left.Store(writers)
	var made [writers][]cowchangeset.Exported[[2]int]
	crew := newCrew()
	for w := range writers {
		crew.add(func() {
			defer left.Add(-1)
			for k := range each {
				if k%100 == 99 {
					mustStart(t, tracker, 1)
				}
				r, err := tracker.Record([2]int{w, k})
				if err != nil {
					t.Error(err)
				}
				made[w] = append(made[w], cowchangeset.Exported[[2]int]{Receipt: r, Value: [2]int{w, k}})
				if k%20 == 0 { // so that there are exports in between
					for n := exports.Load(); exports.Load() < n+1; {
						runtime.Gosched()
					}
				}
			}
		})
	}
	lengths := map[int]bool{}
	crew.add(func() {
		before := ""
		for ; left.Load() > 0; exports.Add(1) {
			lines := exported(t, tracker)
			if !strings.HasPrefix(lines, before) {
				t.Errorf("an export of %d bytes does not begin with the one before, of %d", len(lines), len(before))
			}
			before = lines
			lengths[len(lines)] = true
		}
	})
	crew.run()
	want := slices.SortedFunc(slices.Values(slices.Concat(made[:]...)), func(a, b cowchangeset.Exported[[2]int]) int {
		return cmp.Or(cmp.Compare(a.Ordinal, b.Ordinal), cmp.Compare(a.Seq, b.Seq))
	})
	got, err := imported[[2]int](strings.NewReader(exported(t, tracker)))
	if err != nil || !slices.Equal(got, want) {
		t.Fatalf("%v: %d entries of %d, or not the same", err, len(got), len(want))
	}
	if len(lengths) < each/20 {
		t.Errorf("only %d different exports", len(lengths))
	}
}

// While w is stuck in a write, everybody else goes on.
func TestJSONLinesParkedExport(t *testing.T) {
	tracker := plans[int]()
	mustStart(t, tracker, 1)
	for i := range 5000 { // more than is collected
		tracker.Record(i)
	}
	writing, resume := make(chan struct{}), make(chan struct{})
	var file bytes.Buffer
	w := writerFunc(func(p []byte) (int, error) {
		if file.Len() == 0 {
			close(writing)
			<-resume
		}
		return file.Write(p)
	})
	exporting := make(chan error)
	go func() { exporting <- tracker.Trail().WriteJSONLines(w) }()
	<-writing
	tracker.Record(5000)
	mustStart(t, tracker, 2)
	tracker.Record(5001)
	c, _ := tracker.Current()
	if final, err := c.Seal(context.Background()); err != nil || final.Len() != 1 {
		t.Errorf("%d entries sealed, %v", final.Len(), err)
	}
	if n := tracker.Trail().Len(); n != 5002 {
		t.Errorf("%d entries recorded", n)
	}
	close(resume)
	if err := <-exporting; err != nil {
		t.Error(err)
	}
	if entries, err := imported[int](&file); err != nil || len(entries) != 5000 {
		t.Errorf("%d entries exported, %v", len(entries), err)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

var errDiskFull = errors.New("disk full")

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errDiskFull }

// What is written at a time is bounded, whatever the length of the trail.
func TestJSONLinesAreBuffered(t *testing.T) {
	tracker := plans[string]()
	mustStart(t, tracker, 1)
	for range 2000 {
		tracker.Record(strings.Repeat("x", 100))
	}
	tracker.Record(strings.Repeat("y", 1<<20))
	tracker.Record("z")
	var sizes []int
	size := 0
	if err := tracker.Trail().WriteJSONLines(writerFunc(func(p []byte) (int, error) {
		sizes = append(sizes, len(p))
		size += len(p)
		return len(p), nil
	})); err != nil {
		t.Fatal(err)
	}
	const buffer, line = 32 << 10, 200
	for i, n := range sizes[:len(sizes)-2] { // all but the one of the long line, and the last
		if n < buffer || n > buffer+line {
			t.Errorf("write %d of %d is of %d bytes", i, len(sizes), n)
		}
	}
	if long := sizes[len(sizes)-2]; long < 1<<20 || long > 1<<20+buffer+line {
		t.Errorf("the write of the long line is of %d bytes", long)
	}
	if want := len(exported(t, tracker)); size != want {
		t.Errorf("%d bytes written, want %d", size, want)
	}
}

func TestJSONLinesOfWhatCannotBeEncoded(t *testing.T) {
	for _, before := range []int{0, 3, 1000} { // the last in several writes
		tracker := plans[float64]()
		mustStart(t, tracker, 2)
		for i := range before {
			tracker.Record(float64(i))
		}
		lines := exported(t, tracker)
		r, _ := tracker.Record(math.Inf(1))
		tracker.Record(1)
		var file strings.Builder
		err := tracker.Trail().WriteJSONLines(&file)
		var unsupported *json.UnsupportedValueError
		if !errors.As(err, &unsupported) {
			t.Fatal(err)
		}
		if want := fmt.Sprintf(`cowchangeset: entry %d of changeset "plan-2" (number 2): json: unsupported value: +Inf`, r.Seq); err.Error() != want {
			t.Errorf("got %q, want %q", err, want)
		}
		if file.String() != lines {
			t.Errorf("%d bytes written, want %d", file.Len(), len(lines))
		}
		if err := tracker.Trail().WriteJSONLines(brokenWriter{}); before > 0 && !errors.Is(err, errDiskFull) || before <= 3 && !errors.As(err, &unsupported) {
			t.Errorf("both failed, and the error is %v", err)
		}
	}
}

// An error of the writer comes through, wherever it fails, and what it has
// written by then is where the lines begin.
func TestJSONLinesWriterFails(t *testing.T) {
	tracker := plans[string]()
	mustStart(t, tracker, 1)
	for range 1000 {
		tracker.Record(strings.Repeat("x", 100))
	}
	lines := exported(t, tracker)
	for room := 0; room < len(lines); room += 1 + len(lines)/50 {
		var file bytes.Buffer
		failed := false
		err := tracker.Trail().WriteJSONLines(writerFunc(func(p []byte) (int, error) {
			if failed {
				t.Fatal("a write after one that failed")
			}
			n, _ := file.Write(p[:min(len(p), room-file.Len())])
			if failed = n < len(p); failed {
				return n, errDiskFull
			}
			return n, nil
		}))
		if !errors.Is(err, errDiskFull) || err.Error() != "cowchangeset: writing the trail: disk full" {
			t.Fatalf("after %d bytes: %v", room, err)
		}
		if file.String() != lines[:room] {
			t.Fatalf("after %d bytes, %d others were written", room, file.Len())
		}
	}
	short := writerFunc(func(p []byte) (int, error) { return len(p) - 1, nil })
	if err := tracker.Trail().WriteJSONLines(short); !errors.Is(err, io.ErrShortWrite) {
		t.Error(err)
	}
}

// ending is a value whose encoding does not return.
type ending struct{ end func() }

func (e ending) MarshalJSON() ([]byte, error) { e.end(); return []byte("0"), nil }

// Values that panic or exit as they are encoded end the export and nothing else.
func TestJSONLinesEndings(t *testing.T) {
	tracker := plans[ending]()
	mustStart(t, tracker, 1)
	end := func() {}
	tracker.Record(ending{func() { end() }})
	end = func() { panic("mine") }
	if p := mustPanic(t, func() { tracker.Trail().WriteJSONLines(io.Discard) }); p != "mine" {
		t.Error(p)
	}
	end = runtime.Goexit
	goexit(t, func() { tracker.Trail().WriteJSONLines(io.Discard) })
	end = func() { tracker.Record(ending{func() {}}) } // which is not in this trail
	if lines := exported(t, tracker); strings.Count(lines, "\n") != 1 {
		t.Errorf("got %q", lines)
	}
	if n := tracker.Trail().Len(); n != 2 {
		t.Errorf("%d entries", n)
	}
}

// imported returns what ReadJSONLines yields, and the error at its end.
func imported[E any](r io.Reader) (entries []cowchangeset.Exported[E], err error) {
	for e, failed := range cowchangeset.ReadJSONLines[E](r) {
		if err != nil {
			return entries, errors.New("more after an error")
		}
		if err = failed; err == nil {
			entries = append(entries, e)
		}
	}
	return entries, err
}

// text returns a string of whatever may be in one.
func text(random *rand.Rand) string {
	pieces := []string{"", "a", "\"", "\\", "\n", "\r\n", "\t", "\x00", "\x7f", "<&>", "\u2028", "é", "日本", "\U0001F600", "\ufffd",
		"\xff", "\xc3", "\xed\xa0\x80", "{}", "[", ",", "null", strings.Repeat("x", 300)}
	var b strings.Builder
	for range random.IntN(8) {
		b.WriteString(pieces[random.IntN(len(pieces))])
	}
	return b.String()
}

// What is read is what was recorded, where it was recorded, whatever is in
// strings: but each byte that is not valid UTF-8 became U+FFFD.
func TestJSONLinesRoundTrip(t *testing.T) {
	valid := func(s string) string { return string([]rune(s)) }
	invalid := 0
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 2))
		tracker := cowchangeset.MustNew(cowchangeset.Config[string]{NewID: func(context.Context) (string, error) { return "#" + text(random), nil }})
		mustStart(t, tracker, 1)
		var want []cowchangeset.Exported[string]
		add := func(r cowchangeset.Receipt, values ...string) {
			r.ChangesetID = valid(r.ChangesetID)
			for i, v := range values {
				if !utf8.ValidString(v) {
					invalid++
				}
				want = append(want, cowchangeset.Exported[string]{Receipt: r, Value: valid(v)})
				want[len(want)-1].Seq += uint64(i)
			}
		}
		for range random.IntN(30) {
			switch random.IntN(8) {
			case 0:
				mustStart(t, tracker, 1)
			case 1: // a place that is voided, so that Seq skips it
				c, _ := tracker.Current()
				c.Reserve("voided")
				c.Len()
			case 2:
				batch := []string{text(random), text(random), text(random)}
				r, _ := tracker.RecordBatch(batch)
				add(r, batch...)
			default:
				v := text(random)
				r, _ := tracker.Record(v)
				add(r, v)
			}
		}
		lines := exported(t, tracker)
		if n := strings.Count(lines, "\n"); n != len(want) || n > 0 && lines[len(lines)-1] != '\n' {
			t.Fatalf("%d lines of %d entries: %q", n, len(want), lines)
		}
		for line := range strings.Lines(lines) {
			if !json.Valid([]byte(line)) || !utf8.ValidString(line) {
				t.Fatalf("%q is no JSON", line)
			}
		}
		if got, err := imported[string](strings.NewReader(lines)); err != nil || !slices.Equal(got, want) {
			t.Fatalf("%v: got %+v, want %+v", err, got, want)
		}
	}
	if invalid < 100 {
		t.Errorf("only %d strings that are not valid UTF-8", invalid)
	}
}

// A file that ends anywhere has the entries of its whole lines, and an error if
// there is more than that.
func TestReadJSONLinesOfAPart(t *testing.T) {
	tracker := plans[string]()
	mustStart(t, tracker, 1)
	for i := range 4 {
		tracker.Record(fmt.Sprintf("value\n%d é", i))
	}
	mustStart(t, tracker, 1)
	tracker.Record("")
	lines := exported(t, tracker)
	whole, err := imported[string](strings.NewReader(lines))
	if err != nil {
		t.Fatal(err)
	}
	for n := range len(lines) {
		got, err := imported[string](strings.NewReader(lines[:n]))
		complete := strings.Count(lines[:n], "\n")
		torn := lines[:n] != "" && lines[n-1] != '\n'
		if torn && lines[n] == '\n' { // all but the end of the line is there
			complete, torn = complete+1, false
		}
		if !slices.Equal(got, whole[:complete]) {
			t.Fatalf("%q: %d entries, want %d", lines[:n], len(got), complete)
		}
		if torn != errors.Is(err, io.ErrUnexpectedEOF) || torn != (err != nil) {
			t.Fatalf("%q: %v", lines[:n], err)
		}
		if torn && !strings.HasPrefix(err.Error(), fmt.Sprintf("cowchangeset: line %d: ", complete+1)) {
			t.Fatal(err)
		}
	}
}

func TestReadJSONLinesOfSomethingElse(t *testing.T) {
	const good = `{"changeset":"a","ordinal":1,"seq":0,"value":7}` + "\n"
	for line, want := range map[string]string{
		`{}`:    "cowchangeset: line 2: it has no ordinal",
		`null`:  "cowchangeset: line 2: it has no ordinal",
		`[]`:    "cowchangeset: line 2: json: cannot unmarshal array",
		`hello`: "cowchangeset: line 2: invalid character 'h'",
		`{"changeset":"a","ordinal":1,"seq":-1,"value":7}`:  "cowchangeset: line 2: json: cannot unmarshal number -1",
		`{"changeset":"a","ordinal":1,"seq":1,"value":"7"}`: "cowchangeset: line 2: json: cannot unmarshal string",
		`{"changeset":"a","ordinal":1,"seq":1,"value":7`:    "cowchangeset: line 2: unexpected EOF",
	} {
		got, err := imported[int](strings.NewReader(good + line))
		if len(got) != 1 || err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, %v; want %s", line, got, err, want)
		}
	}
	got, err := imported[int](io.MultiReader(strings.NewReader(good), readerFunc(func([]byte) (int, error) { return 0, errDiskFull })))
	if len(got) != 1 || !errors.Is(err, errDiskFull) {
		t.Errorf("%v, %v", got, err)
	}
	n := 0
	for range cowchangeset.ReadJSONLines[int](strings.NewReader(good + good)) {
		n++
		break
	}
	if n != 1 {
		t.Errorf("%d entries before a break", n)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// Numbers in an any are the same after an export, also those that a float64 has not.
func TestReadJSONLinesNumbers(t *testing.T) {
	type row struct{ Columns map[string]any }
	want := []any{int64(1<<53 + 1), uint64(1<<64 - 1), int64(-1 << 63), 0.1, "9007199254740993"}
	var tracker cowchangeset.Tracker[row]
	tracker.Start(t.Context())
	for _, n := range want {
		tracker.Record(row{map[string]any{"id": n, "deep": []any{n}}})
	}
	var text strings.Builder
	if err := tracker.Trail().WriteJSONLines(&text); err != nil {
		t.Fatal(err)
	}
	rows, err := imported[row](strings.NewReader(text.String()))
	if err != nil || len(rows) != len(want) {
		t.Fatal(rows, err)
	}
	for i, r := range rows {
		if got := r.Value.Columns["id"]; fmt.Sprint(got) != fmt.Sprint(want[i]) {
			t.Errorf("%v has become %v", want[i], got)
		}
	}
}
