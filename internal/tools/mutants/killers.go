package main

import (
	"cmp"
	"encoding/json"
	"os"
	"slices"
	"sync"
	"time"
)

// killers remembers which tests have killed mutants of which functions, to try
// them first. It only saves time: what it says wrong is found out.
type killers struct {
	path string
	mu   sync.Mutex
	// Kills is how often, by target, layer and function, and by test.
	Kills map[string]map[string]int
}

func newKillers(path string) *killers {
	k := &killers{path: path, Kills: map[string]map[string]int{}}
	if text, err := os.ReadFile(k.path); err == nil {
		if json.Unmarshal(text, &k.Kills) != nil {
			k.Kills = map[string]map[string]int{}
		}
	}
	return k
}

func (m *mutant) memory(l *layer) string {
	return m.target.dir + " " + l.name + " " + m.function
}

// add notes that a test has killed m.
func (k *killers) add(m *mutant, l *layer, test string) {
	if test == "" {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	key := m.memory(l)
	if k.Kills[key] == nil {
		k.Kills[key] = map[string]int{}
	}
	k.Kills[key][test]++
}

// firstKillers is how many tests are tried before all others, and slowKiller
// how long each of them may take.
const (
	firstKillers = 4
	slowKiller   = 3 * time.Second
)

// of returns those of the tests in b that killed most mutants like m.
func (k *killers) of(m *mutant, b *baseline) []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	counts := k.Kills[m.memory(b.layer)]
	var tests []string
	for test := range counts {
		if took, ok := b.took[test]; ok && took <= slowKiller {
			tests = append(tests, test)
		}
	}
	slices.SortFunc(tests, func(x, y string) int {
		return cmp.Or(cmp.Compare(counts[y], counts[x]), cmp.Compare(b.took[x], b.took[y]), cmp.Compare(x, y))
	})
	return tests[:min(len(tests), firstKillers)]
}

func (k *killers) save() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	text, err := json.Marshal(k.Kills)
	if err != nil {
		return err
	}
	return os.WriteFile(k.path, text, 0o666)
}
