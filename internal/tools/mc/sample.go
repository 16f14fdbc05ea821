//go:build modelcheck

package mc

// Sample is Explore for a test that looks at a few executions each of thousands of bodies. A row
// for each would say nothing, so the book has none of them: the test itself says what it covers.
func Sample(cfg Config, body func(*M)) Result {
	cfg.booked = true
	return Explore(cfg, body)
}
