// Package headline lists the cases that every run measures, first and whatever
// its budget: what decides whether to use a structure. They are what services do
// most, and hold cases that we lose.
package headline

import (
	"regexp"
	"slices"
	"strings"
)

// Case is one benchmark with its parameters but for the implementation.
type Case struct {
	Name string // RegistryMix/keys=100/read=90/order=uniform
	Says string // what a user would call it
}

// Speed lists cases of throughput.
var Speed = []Case{
	{"BreakerCall/failures=1", "a call through a breaker, one in a hundred fails"},
	{"CacheHit/keys=100/order=uniform", "a cache hit among 100 keys"},
	{"CacheCreate/keys=1000", "creating a value and deleting it"},
	{"RegistryMix/keys=100/read=100/order=uniform", "a read among 100 keys"},
	{"RegistryMix/keys=100/read=90/order=uniform", "nine reads for one update"},
	{"RegistryUpdateHot/keys=1", "all update one key"},
	{"TrackerRecord/perset=1000", "recording a change"},
	{"SliceReadMostly/writes=1", "a load of a shared slice, or one append in a hundred"},
}

// Latency lists cases of latency.
var Latency = []Case{
	{"LatencyBreakerCall/load=closed/threads=4x", "a call through a breaker"},
	{"LatencyCacheHit/load=closed/threads=4x", "a cache hit"},
	{"LatencyCacheSlowKey/load=paced/threads=4x", "a cache hit while another key is created for 50 ms"},
	{"LatencyRegistrySlowCode/load=closed/threads=1x", "a read or update beside updates that take 200 µs"},
	{"LatencyTrackerRecord/load=closed/threads=4x", "recording a change"},
}

// Kept lists cases that every run measures besides, if not first. We lose them, and a budget
// would leave them out for their preparation.
var Kept = []string{
	"RegistryMix/keys=100000/read=50/order=uniform",
}

// Pattern selects the cases of all implementations, as an argument of go test
// -bench.
func Pattern(cases []Case) string {
	alternatives := make([]string, len(cases))
	for i, c := range cases {
		elements := strings.Split("Benchmark"+c.Name, "/")
		for k, element := range elements {
			elements[k] = "^" + regexp.QuoteMeta(element) + "$"
		}
		alternatives[i] = strings.Join(elements, "/")
	}
	return strings.Join(alternatives, "|")
}

// Has reports whether a benchmark belongs to a case. Its name may begin with
// Benchmark and end with the implementation.
func Has(benchmark string) bool {
	name := caseOf(benchmark)
	return slices.ContainsFunc(append(slices.Clone(Speed), Latency...), func(c Case) bool { return c.Name == name })
}

// Keeps reports whether a benchmark belongs to a case that no budget leaves out.
func Keeps(benchmark string) bool {
	return Has(benchmark) || slices.Contains(Kept, caseOf(benchmark))
}

func caseOf(benchmark string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(benchmark, "Benchmark"), "/impl=")
	return name
}
