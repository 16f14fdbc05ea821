//go:build !modelcheck

package atomicbreaker_test

import (
	"encoding"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/latchfree/latchfree/atomicbreaker"
)

// A group's settings come from a file, apart from functions.
func ExampleSettings() {
	const file = `{
		"default": {
			"trip": "AnyOf(Consecutive(5), FailureRate(0.5, 20, 10s))",
			"openTimeout": "30s",
			"jitter": 0.2
		},
		"idleTimeout": "1m"
	}`
	var settings struct {
		Default     atomicbreaker.Settings `json:"default"`
		IdleTimeout atomicbreaker.Duration `json:"idleTimeout"`
	}
	decoder := json.NewDecoder(strings.NewReader(file))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&settings); err != nil {
		fmt.Println(err)
		return
	}
	upstream, err := atomicbreaker.NewGroup(atomicbreaker.GroupConfig[string]{
		Default:     settings.Default.Config(),
		IdleTimeout: time.Duration(settings.IdleTimeout),
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
	fmt.Println(atomicbreaker.ParsePolicy("AnyOf(Consecutive(5), SlowRate(0.5, 2s, 20, 1m))"))
	fmt.Println(atomicbreaker.ParsePolicy("KOfN(5)"))
	fmt.Println(atomicbreaker.ParsePolicy("KOfN(5, 3)"))
	fmt.Println(atomicbreaker.ParsePolicy("FailureCount(9, 60)"))
	// Output:
	// AnyOf(Consecutive(5), SlowRate(0.5, 2s, 20, 1m0s)) <nil>
	// <nil> atomicbreaker: policy "KOfN(5)": "KOfN(5)" must be KOfN(k, n)
	// <nil> atomicbreaker: Config.Trip: KOfN(5, 3): k must be in 1..n
	// <nil> atomicbreaker: policy "FailureCount(9, 60)": "60" must end with a unit, such as s or ms, as argument 2 of FailureCount(n, window)
}

// The settings that are in use are written as a document.
func ExampleConfig_Settings() {
	c := atomicbreaker.Config{Trip: atomicbreaker.KOfN(3, 10), OpenTimeout: 30 * time.Second}
	settings, err := c.Settings()
	if err != nil {
		fmt.Println(err) // a policy without a text form
		return
	}
	text, err := json.Marshal(settings)
	fmt.Println(string(text), err)
	// Output: {"trip":"KOfN(3, 10)","openTimeout":"30s"} <nil>
}

// Viper decodes with mapstructure, which gives texts to types that have UnmarshalText if
// it has this hook:
//
//	err := viper.UnmarshalKey("upstream", &settings,
//		viper.DecodeHook(mapstructure.TextUnmarshallerHookFunc()))
//
// Keys match fields in any case. A duration without quotes or a unit is a number to
// mapstructure, which takes it for nanoseconds and does not ask UnmarshalText.
func ExampleSettings_textUnmarshaler() {
	document := map[string]any{"trip": "KOfN(3, 10)", "openTimeout": "30s", "probeTimeout": "10"}
	var settings atomicbreaker.Settings
	for key, field := range map[string]encoding.TextUnmarshaler{
		"trip":         &settings.Trip,
		"openTimeout":  &settings.OpenTimeout,
		"probeTimeout": &settings.ProbeTimeout,
	} { // which is what the hook does
		if err := field.UnmarshalText([]byte(document[key].(string))); err != nil {
			fmt.Printf("%s: %v\n", key, err)
		}
	}
	fmt.Println(settings.Trip.Policy, settings.OpenTimeout)
	// Output:
	// probeTimeout: atomicbreaker: duration "10" must end with a unit, such as s or ms
	// KOfN(3, 10) 30s
}
