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
	"math"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/latchfree/latchfree/cowchangeset"
)

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
