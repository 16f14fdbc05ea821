package journal_test

import (
	"encoding/json"
	"errors"
	"math"
	"math/big"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/cowchangeset/journal"
	"github.com/latchfree/latchfree/internal/tools/journaltest"
)

// event has implementations: encoding/json cannot know which one to make.
type event interface{ Kind() string }

type made struct{ Name string }

func (made) Kind() string { return "made" }

// oneWay writes JSON that it does not read.
type oneWay struct{ N int }

func (o oneWay) MarshalJSON() ([]byte, error) { return json.Marshal([]int{o.N}) }

// both writes JSON and reads it.
type both struct{ n int }

func (b both) MarshalJSON() ([]byte, error)  { return json.Marshal(b.n) }
func (b *both) UnmarshalJSON(t []byte) error { return json.Unmarshal(t, &b.n) }

// A type none of whose values can be read back is refused by Open, before a file is
// made, and others are not.
func TestRefusedTypes(t *testing.T) {
	type private struct{ _ int }
	type inner struct{ Event event }
	type tree struct {
		Left, Right *tree
		Leaf        map[string][]any
	}
	for name, tt := range map[string]struct {
		open func(string) error
		why  string
	}{
		"interface":         {opens[event], "interface with methods"},
		"error":             {opens[error], "interface with methods"},
		"pointer to one":    {opens[*event], "interface with methods"},
		"channel":           {opens[chan int], "cannot encode"},
		"function":          {opens[func()], "cannot encode"},
		"complex":           {opens[complex128], "cannot encode"},
		"no exported field": {opens[private], "no exported fields"},
		"pointer":           {opens[**private], "no exported fields"},
		"mutex":             {opens[*sync.Mutex], "no exported fields"},
		"any":               {opens[any], ""},
		"empty struct":      {opens[struct{}], ""},
		"one of its own":    {opens[both], ""},
		"one way":           {opens[oneWay], ""},
		"inner":             {opens[inner], ""},
		"recursive":         {opens[*tree], ""},
		"time":              {opens[time.Time], ""},
		"big":               {opens[*big.Int], ""},
		"raw":               {opens[json.RawMessage], ""},
	} {
		path := newPath(t)
		err := tt.open(path)
		if (err == nil) != (tt.why == "") || err != nil && (!strings.Contains(err.Error(), tt.why) || !strings.HasPrefix(err.Error(), "journal: ")) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := verify(path); (err == nil) != (tt.why == "") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func opens[E any](path string) error {
	j, err := journal.Open[E](path, journal.Options{})
	if err != nil {
		return err
	}
	return j.Close()
}

// A value that could not be read back is refused, by Validate and by Append.
func TestRefusedValues(t *testing.T) {
	type inner struct{ Event event }
	t.Run("one way", func(t *testing.T) { refused(t, oneWay{1}, "could not be read back") })
	t.Run("inner", func(t *testing.T) { refused(t, inner{made{"x"}}, "could not be read back") })
	t.Run("inner nil", func(t *testing.T) { kept(t, inner{}) })
	t.Run("inner interface", func(t *testing.T) {
		refused[struct{ E error }](t, struct{ E error }{errBoom}, "could not be read back")
	})
	t.Run("both", func(t *testing.T) { kept(t, both{5}) })
	t.Run("NaN", func(t *testing.T) { refused(t, math.NaN(), "unsupported value") })
	t.Run("channel", func(t *testing.T) { refused[any](t, make(chan int), "unsupported type") })
	t.Run("not UTF-8", func(t *testing.T) { refused(t, json.RawMessage("\"\xff\""), "not UTF-8") })
	t.Run("large", func(t *testing.T) {
		refused(t, strings.Repeat("x", 99), "101 bytes of JSON, more than Options.MaxEntry, which is 100")
	})
	t.Run("as large as can be", func(t *testing.T) { kept(t, strings.Repeat("x", 98)) })
	t.Run("raw", func(t *testing.T) { kept(t, json.RawMessage(`{"hash":"0","x":[1,"\"}"]}`)) })
	t.Run("time", func(t *testing.T) { kept(t, time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)) })
	t.Run("text", func(t *testing.T) { kept(t, big.NewInt(1).Lsh(big.NewInt(1), 100).String()) })
}

func refused[E any](t *testing.T, value E, why string) {
	m := &memory{}
	j, err := journaltest.Open[E](m, journal.Options{MaxEntry: 100})
	must(t, err)
	must(t, j.Start(background, header{ID: "A", Ordinal: 1}))
	before := string(m.Text())
	if err := j.Validate(value); err == nil || !strings.Contains(err.Error(), why) || !strings.HasPrefix(err.Error(), "journal: ") {
		t.Errorf("Validate: %v", err)
	}
	if err := j.Append(background, "A", journaltest.Entries(0, value)); err == nil || !strings.Contains(err.Error(), why) {
		t.Errorf("Append: %v", err)
	}
	if string(m.Text()) != before {
		t.Errorf("it was written: %s", m.Text())
	}
}

func kept[E any](t *testing.T, value E) {
	m := &memory{}
	j, err := journaltest.Open[E](m, journal.Options{MaxEntry: 100})
	must(t, err)
	must(t, j.Start(background, header{ID: "A", Ordinal: 1}))
	must(t, j.Validate(value))
	must(t, j.Append(background, "A", journaltest.Entries(0, value)))
	j, err = journaltest.Open[E](m, journal.Options{})
	must(t, err)
	equal(t, load(t, j)[0].Entries, journaltest.Entries(0, value))
}

// Numbers in an any are what they were, also those that a float64 is not.
func TestNumbers(t *testing.T) {
	m := &memory{}
	j := on(t, m)
	big := map[string]any{"id": int64(1<<53 + 1), "max": uint64(math.MaxUint64), "pi": 3.25}
	tell(t, j, []step{start("A", 1, ""), add("A", item(0, big), item(1, int64(math.MinInt64)))})
	got := load(t, on(t, m))[0].Entries
	equal(t, got, []entry{
		item(0, map[string]any{"id": json.Number("9007199254740993"), "max": json.Number("18446744073709551615"), "pi": json.Number("3.25")}),
		item(1, json.Number("-9223372036854775808")),
	})
}

// Old values can be converted on the way, and an entry that cannot be decoded is named.
func TestUpcast(t *testing.T) {
	m := &memory{}
	tell(t, on(t, m), []step{start("A", 1, ""), add("A", journaltest.Entries[any](0, "5", 6)...), add("A", journaltest.Entries[any](5, "7", "eight")...)})
	type number struct{ N int }
	o := journal.Options{Upcast: func(v journal.Value) (json.RawMessage, error) {
		if v.ChangesetID != "A" {
			t.Errorf("%+v", v)
		}
		if v.Seq == 6 && string(v.JSON) == `"eight"` {
			return nil, errBoom
		}
		return json.RawMessage(" {\"N\":" + strings.Trim(string(v.JSON), `"`) + "}\n"), nil
	}}
	j, err := journaltest.Open[number](m, o)
	must(t, err)
	var wrong *journal.DecodeError
	for s, err := range j.Load(background) {
		if !errors.As(err, &wrong) || !errors.Is(err, errBoom) {
			t.Error(s, err)
		}
	}
	if wrong == nil || wrong.Journal != "memory" || wrong.Line != 4 || wrong.ChangesetID != "A" || wrong.Seq != 6 {
		t.Errorf("%+v", wrong)
	}
	was := o.Upcast
	o.Upcast = func(v journal.Value) (json.RawMessage, error) {
		if v.Seq == 6 {
			v.JSON = json.RawMessage("8")
		}
		return was(v)
	}
	j, err = journaltest.Open[number](m, o)
	must(t, err)
	equal(t, load(t, j)[0].Entries, []cowchangeset.Entry[number]{{Seq: 0, Value: number{5}}, {Seq: 1, Value: number{6}}, {Seq: 5, Value: number{7}}, {Seq: 6, Value: number{8}}})
	for _, bad := range []string{`{"N":1}{"N":2}`, `{"N":1} 2`, ``, `{"N":`, `{"N":1}x`} {
		o.Upcast = func(journal.Value) (json.RawMessage, error) { return json.RawMessage(bad), nil }
		j, err = journaltest.Open[number](m, o)
		must(t, err)
		for s, err := range j.Load(background) {
			if !errors.As(err, &wrong) {
				t.Errorf("%q: %v, %v", bad, s, err)
			}
		}
	}
}
