//go:build modelcheck

package mc

// Flaws are the reductions that are broken on purpose.
var Flaws = map[string]func(*Config){
	"never reverses a race":        func(c *Config) { c.flaw = flawNoRaces },
	"never wakes a sleeper":        func(c *Config) { c.flaw = flawOversleep },
	"looks no further than a gate": func(c *Config) { c.flaw = flawBlindGate },
	"takes stores for commuting":   func(c *Config) { c.flaw = flawCommute },
	"forgets what reads are after": func(c *Config) { c.flaw = flawReads },
	"sees one gate of two":         func(c *Config) { c.flaw = flawOneGate },
	"forgets who started a thread": func(c *Config) { c.flaw = flawOrphan },
	"starts threads after it all":  func(c *Config) { c.flaw = flawElder },
}

// Problems returns what is wrong with w.
func (w World[T]) Problems() []string { return w.explore(false, false).problems }

// Progress is what CheckProgress does about documentation.
func Progress(dir string, covered map[string][]Promise, except map[string]string) ([]string, error) {
	documented, err := documentedProgress(dir)
	return uncovered(documented, covered, except), err
}

// Stalled returns cfg for executions in which T0 stops after so many steps, and nobody has to return.
func Stalled(cfg Config, after int) Config {
	cfg.stall = &stall{after: after}
	return cfg
}
