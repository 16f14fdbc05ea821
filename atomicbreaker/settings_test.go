//go:build !modelcheck

package atomicbreaker_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode"

	ab "github.com/latchfree/latchfree/atomicbreaker"
)

// decode reads a JSON document that has no fields but those of Settings.
func decode(document string) (s ab.Settings, err error) {
	d := json.NewDecoder(strings.NewReader(document))
	d.DisallowUnknownFields()
	return s, d.Decode(&s)
}

// allSettings has a value in every field.
var allSettings = ab.Settings{
	Name: "db", Trip: ab.PolicyText{Policy: ab.AnyOf(ab.Consecutive(5), ab.SlowRate(0.5, 2*time.Second, 20, time.Minute))}, Shadow: true,
	OpenTimeout: ab.Duration(30 * time.Second), MaxOpenTimeout: ab.Duration(time.Hour), Jitter: 0.25,
	Probes: 2, CloseAfter: 3, ProbeFailureRate: 0.5, ProbeTimeout: ab.Duration(1500 * time.Millisecond), DetailedErrors: true,
}

const allSettingsText = `{"name":"db","trip":"AnyOf(Consecutive(5), SlowRate(0.5, 2s, 20, 1m0s))","shadow":true,` +
	`"openTimeout":"30s","maxOpenTimeout":"1h0m0s","jitter":0.25,"probes":2,"closeAfter":3,"probeFailureRate":0.5,"probeTimeout":"1.5s","detailedErrors":true}`

// Settings have every field of a Config that is no function, under the same
// name, and lose none on the way there and back.
func TestSettingsHaveTheFieldsOfConfig(t *testing.T) {
	config, settings := reflect.TypeFor[ab.Config](), reflect.TypeFor[ab.Settings]()
	for i := range config.NumField() {
		f := config.Field(i)
		if _, ok := settings.FieldByName(f.Name); !ok && f.Type.Kind() != reflect.Func {
			t.Errorf("Settings lack %s", f.Name)
		}
	}
	for i := range settings.NumField() {
		f := settings.Field(i)
		if _, ok := config.FieldByName(f.Name); !ok {
			t.Errorf("Config lacks %s", f.Name)
			continue
		}
		key := string(unicode.ToLower(rune(f.Name[0]))) + f.Name[1:]
		for _, format := range []string{"json", "yaml"} {
			if name, _, _ := strings.Cut(f.Tag.Get(format), ","); name != key {
				t.Errorf("%s is %q in %s, want %q", f.Name, name, format, key)
			}
		}
		value := reflect.ValueOf(allSettings).Field(i)
		if value.IsZero() {
			t.Errorf("allSettings lack %s", f.Name)
		}
		var one ab.Settings
		reflect.ValueOf(&one).Elem().Field(i).Set(value)
		c := one.Config()
		if reflect.ValueOf(c).FieldByName(f.Name).IsZero() {
			t.Errorf("%s is not in the Config", f.Name)
		}
		if back, err := c.Settings(); err != nil || !reflect.DeepEqual(back, one) {
			t.Errorf("%s: %+v becomes %+v, %v", f.Name, one, back, err)
		}
	}
}

func TestSettingsAsJSON(t *testing.T) {
	for text, s := range map[string]ab.Settings{
		allSettingsText:          allSettings,
		`{}`:                     {},
		`{"openTimeout":"-1ns"}`: {OpenTimeout: -1},
	} {
		got, err := json.Marshal(s)
		if err != nil || string(got) != text {
			t.Errorf("%s, %v, want %s", got, err, text)
		}
		if got, err := decode(text); err != nil || !reflect.DeepEqual(got, s) {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{`{"trip": "", "openTimeout": "0s", "jitter": 0}`, `{"trip": null, "openTimeout": null, "probes": null}`} {
		if got, err := decode(text); err != nil || !reflect.DeepEqual(got, ab.Settings{}) {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	if _, err := ab.New(allSettings.Config()); err != nil {
		t.Error(err)
	}
}

// What is wrong in a document is an error that says what, and where as far as
// encoding/json does.
func TestWrongSettingsAsJSON(t *testing.T) {
	for text, want := range map[string]string{
		`{"openTimeout": "30"}`:      `atomicbreaker: duration "30" must end with a unit, such as s or ms`,
		`{"openTimeout": "1m30"}`:    `atomicbreaker: duration "1m30" must end with a unit`,
		`{"openTimeout": "a while"}`: `atomicbreaker: duration "a while" must be like "1m30s", in units from ns to h, and below 292 years`,
		`{"openTimeout": ""}`:        `atomicbreaker: duration "" must be like "1m30s"`,
		`{"openTimeout": 30}`:        `json: cannot unmarshal number into Go struct field Settings.openTimeout`,
		`{"trip": "KOfN(5)"}`:        `atomicbreaker: policy "KOfN(5)": "KOfN(5)" must be KOfN(k, n)`,
		`{"trip": "KOfN(5, 3)"}`:     `atomicbreaker: Config.Trip: KOfN(5, 3): k must be in 1..n`,
		`{"trip": 5}`:                `json: cannot unmarshal number into Go struct field Settings.trip`,
		`{"openTimeouts": "30s"}`:    `json: unknown field "openTimeouts"`,
		`{"Backoff": null}`:          `json: unknown field "Backoff"`,
	} {
		if _, err := decode(text); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v\nwant %s", text, err, want)
		}
	}
	// What was there before stays.
	s := allSettings
	if s.OpenTimeout.UnmarshalText([]byte("30")) == nil || s.Trip.UnmarshalText([]byte("x")) == nil || !reflect.DeepEqual(s, allSettings) {
		t.Errorf("%+v", s)
	}
}

// posing is a policy that says to be another.
type posing struct {
	ab.Policy
	as string
}

func (p posing) String() string { return p.as }

// What no text says is an error, rather than a document that says something
// else; functions are left out.
func TestConfigWithoutTextForm(t *testing.T) {
	many := make([]ab.Policy, 64)
	for i := range many {
		many[i] = ab.Consecutive(1)
	}
	for want, p := range map[string]ab.Policy{
		`atomicbreaker: policy "Mine(5)": "Mine" must be one of `:                                              posing{ab.Consecutive(5), "Mine(5)"},
		`atomicbreaker: policy "AnyOf(Mine(5))": "Mine" must be one of `:                                       ab.AnyOf(posing{ab.Consecutive(5), "Mine(5)"}),
		`atomicbreaker: policy "Consecutive(5)" is a atomicbreaker_test.posing, which has no text form`:        posing{ab.Consecutive(5), "Consecutive(5)"},
		`atomicbreaker: policy "AnyOf(<nil>)": "<nil>" must be one of `:                                        ab.AnyOf(nil),
		`atomicbreaker: Config.Trip: KOfN(5, 3): k must be in 1..n (so it has no text form)`:                   ab.KOfN(5, 3),
		fmt.Sprintf("atomicbreaker: policy %q: \"Consecutive\" must be among the first 64", ab.AnyOf(many...)): ab.AnyOf(many...),
	} {
		_, err := ab.Config{Trip: p}.Settings()
		_, textErr := ab.PolicyText{Policy: p}.MarshalText()
		_, jsonErr := json.Marshal(ab.Settings{Trip: ab.PolicyText{Policy: p}})
		if err == nil || !strings.HasPrefix(err.Error(), want) || !strings.Contains(err.Error(), "no text form") {
			t.Errorf("%v\nwant %s", err, want)
		}
		if fmt.Sprint(textErr) != fmt.Sprint(err) || jsonErr == nil || !strings.Contains(jsonErr.Error(), want) {
			t.Errorf("%v\n%v", textErr, jsonErr)
		}
	}
	c := ab.Config{
		Name: "db", Backoff: func(int) time.Duration { return 0 }, Classify: func(context.Context, error) ab.Outcome { return ab.Ignored }, OnStateChange: func(ab.Event) {},
	}
	if s, err := c.Settings(); err != nil || !reflect.DeepEqual(s, ab.Settings{Name: "db"}) {
		t.Errorf("%+v, %v", s, err)
	}
}

// A Duration is what time.Duration prints, and is read back from it.
func TestDurationsAreReadBack(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 1000 {
		d := [...]time.Duration{0, 1, -1, math.MaxInt64, math.MinInt64, time.Minute}[i%6]
		if i >= 6 {
			d = time.Duration(r.Uint64()) >> r.IntN(64)
		}
		text, err := ab.Duration(d).MarshalText()
		got := ab.Duration(77)
		if err != nil || string(text) != d.String() || got.UnmarshalText(text) != nil || time.Duration(got) != d {
			t.Errorf("%v: %s, %v", d, text, got)
		}
	}
}

// Durations and policies are flags.
func TestSettingsAsFlags(t *testing.T) {
	s := ab.Settings{OpenTimeout: ab.Duration(time.Second)}
	parse := func(args ...string) error {
		f := flag.NewFlagSet("", flag.ContinueOnError)
		f.SetOutput(io.Discard)
		f.TextVar(&s.OpenTimeout, "open", s.OpenTimeout, "")
		f.TextVar(&s.Trip, "trip", s.Trip, "")
		return f.Parse(args)
	}
	if err := parse(); err != nil || !reflect.DeepEqual(s, ab.Settings{OpenTimeout: ab.Duration(time.Second)}) {
		t.Errorf("%+v, %v", s, err)
	}
	if err := parse("-open=1m", "-trip", "KOfN(3, 5)"); err != nil || fmt.Sprint(s.OpenTimeout, s.Trip) != "1m0s {KOfN(3, 5)}" {
		t.Errorf("%+v, %v", s, err)
	}
	if err := parse("-open=60"); err == nil || !strings.Contains(err.Error(), "must end with a unit") {
		t.Error(err)
	}
}
