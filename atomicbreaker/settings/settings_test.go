package settings_test

import (
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
	"github.com/latchfree/latchfree/atomicbreaker/settings"
)

// decode reads a JSON document that has no fields but those of a Breaker.
func decode(document string) (s settings.Breaker, err error) {
	d := json.NewDecoder(strings.NewReader(document))
	d.DisallowUnknownFields()
	return s, d.Decode(&s)
}

// allSettings has a value in every field.
var allSettings = settings.Breaker{
	Name: "db", Policy: settings.Policy{Policy: ab.AnyOf(ab.Consecutive(5), ab.SlowRate(0.5, 2*time.Second, 20, time.Minute))}, Shadow: true,
	OpenTimeout: settings.Duration(30 * time.Second), MaxOpenTimeout: settings.Duration(time.Hour), Jitter: 0.25,
	Probes: 2, CloseAfter: 3, ProbeFailureRate: 0.5, ProbeTimeout: settings.Duration(1500 * time.Millisecond), RecordTotals: true, DetailedErrors: true,
}

const allSettingsText = `{"name":"db","policy":"AnyOf(Consecutive(5), SlowRate(0.5, 2s, 20, 1m0s))","shadow":true,` +
	`"openTimeout":"30s","maxOpenTimeout":"1h0m0s","jitter":0.25,"probes":2,"closeAfter":3,"probeFailureRate":0.5,"probeTimeout":"1.5s","recordTotals":true,"detailedErrors":true}`

// A Breaker has every field of a Config that is no function, under the same name, and
// Config gives each on.
func TestSettingsHaveTheFieldsOfConfig(t *testing.T) {
	config, text := reflect.TypeFor[ab.Config](), reflect.TypeFor[settings.Breaker]()
	for i := range config.NumField() {
		f := config.Field(i)
		if _, ok := text.FieldByName(f.Name); !ok && f.Type.Kind() != reflect.Func {
			t.Errorf("Breaker lacks %s", f.Name)
		}
	}
	for i := range text.NumField() {
		f := text.Field(i)
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
		var one settings.Breaker
		reflect.ValueOf(&one).Elem().Field(i).Set(value)
		c := one.Config()
		if reflect.ValueOf(c).FieldByName(f.Name).IsZero() {
			t.Errorf("%s is not in the Config", f.Name)
		}
	}
}

func TestSettingsAsJSON(t *testing.T) {
	for text, s := range map[string]settings.Breaker{
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
	for _, text := range []string{`{"policy": "", "openTimeout": "0s", "jitter": 0}`, `{"policy": null, "openTimeout": null, "probes": null}`} {
		if got, err := decode(text); err != nil || !reflect.DeepEqual(got, settings.Breaker{}) {
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
		`{"openTimeout": "30"}`:      `settings: time: missing unit in duration "30"`,
		`{"openTimeout": "1m30"}`:    `settings: time: missing unit in duration "1m30"`,
		`{"openTimeout": "a while"}`: `settings: time: invalid duration "a while"`,
		`{"openTimeout": ""}`:        `settings: time: invalid duration ""`,
		`{"openTimeout": 30}`:        `json: cannot unmarshal number into Go struct field Breaker.openTimeout`,
		`{"policy": "KOfN(5)"}`:      `settings: policy "KOfN(5)": "KOfN(5)" must be KOfN(k, n)`,
		`{"policy": "KOfN(5, 3)"}`:   `atomicbreaker: Config.Policy: KOfN(5, 3): k must be in 1..n`,
		`{"policy": 5}`:              `json: cannot unmarshal number into Go struct field Breaker.policy`,
		`{"openTimeouts": "30s"}`:    `json: unknown field "openTimeouts"`,
		`{"Backoff": null}`:          `json: unknown field "Backoff"`,
	} {
		if _, err := decode(text); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v\nwant %s", text, err, want)
		}
	}
	// What was there before stays.
	s := allSettings
	if s.OpenTimeout.UnmarshalText([]byte("30")) == nil || s.Policy.UnmarshalText([]byte("x")) == nil || !reflect.DeepEqual(s, allSettings) {
		t.Errorf("%+v", s)
	}
}

// What no text says is an error, rather than a document that says something else.
func TestPoliciesWithoutTextForm(t *testing.T) {
	many := make([]ab.Policy, 64)
	for i := range many {
		many[i] = ab.Consecutive(1)
	}
	function := ab.TripFunc(time.Second, 0, func(ab.Counts) bool { return true })
	for want, p := range map[string]ab.Policy{
		`settings: policy "TripFunc(1s, 0s, func)": "TripFunc" must be one of `:                                                              function,
		`settings: policy "AnyOf(TripFunc(1s, 0s, func))": argument 1 of AnyOf(policy, ...): "TripFunc" must be one of `:                     ab.AnyOf(function),
		`settings: policy "AnyOf(<nil>)": argument 1 of AnyOf(policy, ...): "<nil>" must be one of `:                                         ab.AnyOf(nil),
		`atomicbreaker: Config.Policy: KOfN(5, 3): k must be in 1..n (so it has no text form)`:                                               ab.KOfN(5, 3),
		fmt.Sprintf("settings: policy %q: argument 64 of AnyOf(policy, ...): \"Consecutive\" must be among the first 64", ab.AnyOf(many...)): ab.AnyOf(many...),
	} {
		_, err := settings.Policy{Policy: p}.MarshalText()
		_, jsonErr := json.Marshal(settings.Breaker{Policy: settings.Policy{Policy: p}})
		if err == nil || !strings.HasPrefix(err.Error(), want) || !strings.Contains(err.Error(), "no text form") {
			t.Errorf("%v\nwant %s", err, want)
		}
		if jsonErr == nil || !strings.Contains(jsonErr.Error(), want) {
			t.Errorf("%v", jsonErr)
		}
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
		text, err := settings.Duration(d).MarshalText()
		got := settings.Duration(77)
		if err != nil || string(text) != d.String() || got.UnmarshalText(text) != nil || time.Duration(got) != d {
			t.Errorf("%v: %s, %v", d, text, got)
		}
	}
}

// Durations and policies are flags.
func TestSettingsAsFlags(t *testing.T) {
	s := settings.Breaker{OpenTimeout: settings.Duration(time.Second)}
	parse := func(args ...string) error {
		f := flag.NewFlagSet("", flag.ContinueOnError)
		f.SetOutput(io.Discard)
		f.TextVar(&s.OpenTimeout, "open", s.OpenTimeout, "")
		f.TextVar(&s.Policy, "policy", s.Policy, "")
		return f.Parse(args)
	}
	if err := parse(); err != nil || !reflect.DeepEqual(s, settings.Breaker{OpenTimeout: settings.Duration(time.Second)}) {
		t.Errorf("%+v, %v", s, err)
	}
	if err := parse("-open=1m", "-policy", "KOfN(3, 5)"); err != nil || fmt.Sprint(s.OpenTimeout, s.Policy) != "1m0s KOfN(3, 5)" {
		t.Errorf("%+v, %v", s, err)
	}
	if err := parse("-open=60"); err == nil || !strings.Contains(err.Error(), "missing unit") {
		t.Error(err)
	}
}
