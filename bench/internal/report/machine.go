package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Machine is how busy the machine was: how many threads wanted a processor before,
// how many processors others took, and how long a fixed piece of work took.
type Machine struct {
	CPUs   int
	Before float64   // threads before the run; 0 if not known
	Others []float64 // processors in each round
	Probe  []time.Duration
}

// add reads a line of the file.
func (m *Machine) add(line string) {
	for field := range strings.FieldsSeq(line) {
		key, value, _ := strings.Cut(field, "=")
		switch key {
		case "cpus":
			m.CPUs, _ = strconv.Atoi(value)
		case "others":
			if taken, err := strconv.ParseFloat(value, 64); err == nil {
				m.Others = append(m.Others, taken)
			}
		case "probe":
			if d, err := time.ParseDuration(value); err == nil && d > 0 {
				m.Probe = append(m.Probe, d)
			}
		}
	}
}

const (
	// crowded is how many processors others may take, on average: an idle machine's
	// system takes a tenth.
	crowded = 0.25
	// drifted is how much longer than its shortest time the probe may take, but for a
	// tenth of the rounds.
	drifted = 1.25
)

// Busy says in a few sentences that the machine did something else too and what
// that means, or "".
func (m *Machine) Busy() string {
	var signs []string
	if m.CPUs > 0 && m.Before > float64(m.CPUs) {
		signs = append(signs, fmt.Sprintf("%.1f threads wanted its %s before the run began", m.Before, processors(m.CPUs)))
	}
	if mean := m.others(); mean > crowded {
		signs = append(signs, fmt.Sprintf("others took %.1f of its %s during the run, up to %.1f in a round",
			mean, processors(m.CPUs), slices.Max(m.Others)))
	}
	if len(m.Probe) > 0 {
		sorted := slices.Sorted(slices.Values(m.Probe))
		most := sorted[len(sorted)-1-len(sorted)/10] // one round in ten may be disturbed
		if drift := float64(most) / float64(sorted[0]); drift > drifted {
			signs = append(signs, fmt.Sprintf("a fixed piece of work took up to %.1f times its shortest time", drift))
		}
	}
	if len(signs) == 0 {
		return ""
	}
	return "This machine was busy: " + strings.Join(signs, "; ") + ". Times are too long and intervals wide; the longest waits are" +
		" those for a processor. Implementations were measured in turns, so that they can be compared with each other, and with no" +
		" other run. Run again on a quieter machine before you decide."
}

// others returns how many processors others took in a round, on average.
func (m *Machine) others() float64 {
	sum := 0.0
	for _, taken := range m.Others {
		sum += taken
	}
	return sum / float64(max(len(m.Others), 1))
}

func processors(n int) string {
	if n == 1 {
		return "1 processor"
	}
	return strconv.Itoa(n) + " processors"
}
