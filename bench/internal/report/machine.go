package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Machine is how busy the machine was: how many threads wanted a processor, and
// how long a fixed piece of work took.
type Machine struct {
	CPUs   int
	Before float64   // threads before the run; 0 if not known
	Queue  []float64 // threads in each round, ours among them
	Probe  []time.Duration
}

// add reads a line of the file.
func (m *Machine) add(line string) {
	for field := range strings.FieldsSeq(line) {
		key, value, _ := strings.Cut(field, "=")
		switch key {
		case "cpus":
			m.CPUs, _ = strconv.Atoi(value)
		case "queue":
			if q, err := strconv.ParseFloat(value, 64); err == nil {
				m.Queue = append(m.Queue, q)
			}
		case "probe":
			if d, err := time.ParseDuration(value); err == nil && d > 0 {
				m.Probe = append(m.Probe, d)
			}
		}
	}
}

const (
	// crowded is how many threads more than processors make a machine busy: ours
	// take all of them, and the system now and then one.
	crowded = 0.5
	// drifted is how much longer than its shortest time the probe may take.
	drifted = 1.25
)

// Busy says in a few sentences that the machine did something else too and what
// that means, or "".
func (m *Machine) Busy() string {
	var signs []string
	if m.CPUs > 0 && m.Before > float64(m.CPUs) {
		signs = append(signs, fmt.Sprintf("%.1f threads wanted its %s before the run began", m.Before, processors(m.CPUs)))
	}
	if m.CPUs > 0 && len(m.Queue) > 0 {
		sum := 0.0
		for _, q := range m.Queue {
			sum += q
		}
		if mean := sum / float64(len(m.Queue)); mean > float64(m.CPUs)+crowded {
			signs = append(signs, fmt.Sprintf("%.1f threads wanted its %s during the run, up to %.1f in a round",
				mean, processors(m.CPUs), slices.Max(m.Queue)))
		}
	}
	if len(m.Probe) > 0 {
		if drift := float64(slices.Max(m.Probe)) / float64(slices.Min(m.Probe)); drift > drifted {
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

func processors(n int) string {
	if n == 1 {
		return "1 processor"
	}
	return strconv.Itoa(n) + " processors"
}
