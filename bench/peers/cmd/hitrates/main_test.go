package main

import "testing"

// What the table says of SIEVE: it hits more than LRU where some keys are asked for more
// often than others, and scans harm it less; it loses a loop that does not fit, as LRU does.
func TestSIEVE(t *testing.T) {
	for _, tr := range traces() {
		for _, entries := range tr.entries {
			all := tr.keys(entries)
			our, lru := hitRate(newOurs(entries), all), hitRate(newLRU(entries), all)
			t.Logf("%s, %d: %.3f, LRU %.3f", tr.name, entries, our, lru)
			if our < lru {
				t.Errorf("%s, %d entries: %.3f, LRU %.3f", tr.name, entries, our, lru)
			}
		}
	}
	if got := hitRate(newOurs(1000), loop(900)); got < 0.99 {
		t.Errorf("a loop that fits: %.3f", got)
	}
	if got := hitRate(newOurs(1000), loop(1100)); got > 0.01 {
		t.Errorf("a loop that does not fit: %.3f", got)
	}
}

// The list evicts what was used least recently.
func TestLRU(t *testing.T) {
	c := newLRU(2)
	c.add(1)
	c.add(2)
	c.get(1)
	c.add(3)
	if !c.get(1) || c.get(2) || !c.get(3) {
		t.Error("not the least recently used has gone")
	}
}

// A trace is the same each time, and of the shape that it says.
func TestTraces(t *testing.T) {
	a, b := zipf(1), zipf(1)
	count := map[int]int{}
	for i := range a {
		if a[i] != b[i] {
			t.Fatal("two runs differ")
		}
		count[a[i]]++
	}
	if ratio := float64(count[0]) / float64(count[9]); ratio < 9 || ratio > 11 {
		t.Errorf("the first key is asked for %.2f times as often as the tenth", ratio)
	}
	if n := len(scanned(a)); n != lookups+lookups/40_000*10_000 {
		t.Errorf("%d look-ups with scans", n)
	}
}
