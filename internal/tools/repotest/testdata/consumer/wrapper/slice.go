package wrapper

import "github.com/latchfree/latchfree/cowchangeset"

// Journal keeps lines, and records numbers for nobody.
type Journal struct {
	lines   cowchangeset.Slice[string]
	tracker cowchangeset.Tracker[int]
}

// Write is Slice.Append.
func (j *Journal) Write(line string) { j.lines.Append(line) }

// Lines is Slice.Load.
func (j *Journal) Lines() []string { return j.lines.Load() }

// Longest is Slice.All.
func (j *Journal) Longest() (longest int) {
	for _, line := range j.lines.All() {
		longest = max(longest, len(line))
	}
	return longest
}

// Record is Tracker.Record without a changeset.
func (j *Journal) Record(n int) { j.tracker.Record(n) }
