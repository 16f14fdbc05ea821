package settings_test

import (
	"encoding"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/atomicbreaker/settings"
)

// A group's settings come from a file, apart from functions.
func ExampleBreaker() {
	const file = `{
		"default": {
			"policy": "AnyOf(Consecutive(5), FailureRate(0.5, 20, 10s))",
			"openTimeout": "30s",
			"jitter": 0.2
		},
		"forgetAfter": "10m"
	}`
	var document struct {
		Default     settings.Breaker  `json:"default"`
		ForgetAfter settings.Duration `json:"forgetAfter"`
	}
	decoder := json.NewDecoder(strings.NewReader(file))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&document); err != nil {
		fmt.Println(err)
		return
	}
	upstream, err := atomicbreaker.NewGroup(atomicbreaker.GroupConfig[string]{
		Default:     document.Default.Config(),
		ForgetAfter: time.Duration(document.ForgetAfter),
		OnStateChange: func(host string, e atomicbreaker.Event) {
			fmt.Println(host, "is", e.To)
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 5 {
		upstream.RecordFailure("db-1")
	}
	// Output: db-1 is Open
}

// What is wrong is found when the text is read.
func ExampleParsePolicy() {
	fmt.Println(settings.ParsePolicy("AnyOf(Consecutive(5), SlowRate(0.5, 2s, 20, 1m))"))
	fmt.Println(settings.ParsePolicy("KOfN(5)"))
	fmt.Println(settings.ParsePolicy("KOfN(5, 3)"))
	fmt.Println(settings.ParsePolicy("FailureCount(9, 60)"))
	// Output:
	// AnyOf(Consecutive(5), SlowRate(0.5, 2s, 20, 1m0s)) <nil>
	// <nil> settings: policy "KOfN(5)": "KOfN(5)" must be KOfN(k, n)
	// <nil> atomicbreaker: Config.Policy: KOfN(5, 3): k must be in 1..n
	// <nil> settings: policy "FailureCount(9, 60)": argument 2 of FailureCount(n, window): time: missing unit in duration "60"
}

// Viper decodes with mapstructure, which gives texts to types that have UnmarshalText if
// it has this hook:
//
//	err := viper.UnmarshalKey("upstream", &s,
//		viper.DecodeHook(mapstructure.TextUnmarshallerHookFunc()))
//
// Keys match fields in any case. A duration without quotes or a unit is a number to
// mapstructure, which takes it for nanoseconds and does not ask UnmarshalText.
func ExampleBreaker_textUnmarshaler() {
	document := map[string]any{"policy": "KOfN(3, 10)", "openTimeout": "30s", "probeTimeout": "10"}
	var s settings.Breaker
	for key, field := range map[string]encoding.TextUnmarshaler{
		"policy":       &s.Policy,
		"openTimeout":  &s.OpenTimeout,
		"probeTimeout": &s.ProbeTimeout,
	} { // which is what the hook does
		if err := field.UnmarshalText([]byte(document[key].(string))); err != nil {
			fmt.Printf("%s: %v\n", key, err)
		}
	}
	fmt.Println(s.Policy, s.OpenTimeout)
	// Output:
	// probeTimeout: settings: time: missing unit in duration "10"
	// KOfN(3, 10) 30s
}
