package breaker

import (
	"fmt"
	"regexp"
	"strconv"

	"github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/atomicbreaker/settings"
)

var (
	thresholds = regexp.MustCompile(`(Consecutive|KOfN|FailureCount)\((\d+)`)
	ratios     = regexp.MustCompile(`(FailureRate|SlowRate)\(([^,]+)`)
)

// Halved returns a policy that opens a breaker after half as many failures as p does,
// rounded up, or at half the failure rate or rate of slow calls. Nil is the default
// policy of atomicbreaker. A policy with a TripFunc stays as it is.
func Halved(p atomicbreaker.Policy) atomicbreaker.Policy {
	if p == nil {
		p = atomicbreaker.Consecutive(5)
	}
	text := thresholds.ReplaceAllStringFunc(p.String(), func(call string) string {
		m := thresholds.FindStringSubmatch(call)
		n, _ := strconv.Atoi(m[2])
		return fmt.Sprintf("%s(%d", m[1], (n+1)/2)
	})
	text = ratios.ReplaceAllStringFunc(text, func(call string) string {
		m := ratios.FindStringSubmatch(call)
		ratio, _ := strconv.ParseFloat(m[2], 64)
		return fmt.Sprintf("%s(%v", m[1], max(ratio/2, 1e-6)) // the least that there is
	})
	halved, err := settings.ParsePolicy(text)
	if err != nil {
		return p
	}
	return halved
}
