package latchprom

import (
	"github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/atomicbreaker/retrybudget"
	"github.com/latchfree/latchfree/atomicbreaker/throttle"
	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/cowchangeset/journal"
	"github.com/latchfree/latchfree/internal/metrics"
	"github.com/latchfree/latchfree/oncecache"
	"github.com/latchfree/latchfree/shardedregistry"
	"github.com/prometheus/client_golang/prometheus"
)

// Breaker returns a collector for b. Its label is breaker. It panics if b is nil.
func Breaker(name string, b *atomicbreaker.Breaker) prometheus.Collector {
	return newCollector(name, metrics.Breaker(notNil(b, "Breaker: nil breaker")))
}

// Throttle returns a collector for t. Its label is throttle. The counts are those of a
// window, which go up and down. It panics if t is nil.
func Throttle(name string, t *throttle.Throttle) prometheus.Collector {
	return newCollector(name, metrics.Throttle(notNil(t, "Throttle: nil throttle")))
}

// RetryBudget returns a collector for b. Its label is budget. It panics if b is nil.
func RetryBudget(name string, b *retrybudget.Budget) prometheus.Collector {
	return newCollector(name, metrics.RetryBudget(notNil(b, "RetryBudget: nil budget")))
}

// DefaultMaxKeys is what a GroupOptions.MaxKeys of zero means.
const DefaultMaxKeys = metrics.DefaultMaxKeys

// OtherKeys is the value of the label key for all keys that have none of their own.
const OtherKeys = metrics.OtherKeys

// GroupOptions holds the settings of a collector for a Group. The zero value means the
// defaults.
type GroupOptions[K comparable] struct {
	// MaxKeys is how many keys have their own value of the label key at a time. They are the
	// worst: those that reject calls come first, then those with more failures, then those
	// whose label is less. All others are summed under OtherKeys. Zero means 20, and less
	// than zero means none.
	MaxKeys int

	// Label returns the value of the label key. Keys with the same label are summed, so it
	// can also put keys in classes. Nil means fmt.Sprint. It is called at each scrape for
	// each key that is in the group. If it panics or calls runtime.Goexit, the collector has
	// an error and nothing else.
	Label func(K) string
}

// Group returns a collector for g. Its label is group. A scrape walks the keys in the
// group, which are those that fail or have failed, and locks one bucket at a time. It
// panics if g is nil.
func Group[K comparable](name string, g *atomicbreaker.Group[K], o GroupOptions[K]) prometheus.Collector {
	return newCollector(name, metrics.Group(notNil(g, "Group: nil group"), metrics.GroupOptions[K](o)))
}

// CacheOptions says which metrics a Cache has besides the usual ones.
type CacheOptions struct {
	// Flights adds the creations that are under way. A scrape then walks all entries of
	// the cache, and locks one bucket at a time.
	Flights bool
}

// Cache returns a collector for c. Its label is cache. It has metrics of look-ups if c counts
// them, which is Config.RecordStats. It panics if c is nil.
func Cache[K comparable, V any](name string, c *oncecache.Cache[K, V], o CacheOptions) prometheus.Collector {
	return newCollector(name, metrics.Cache(notNil(c, "Cache: nil cache"), o.Flights))
}

// Registry returns a collector for r. Its label is registry. It panics if r is nil.
func Registry[K comparable, V any](name string, r *shardedregistry.Registry[K, V]) prometheus.Collector {
	return newCollector(name, metrics.Registry(notNil(r, "Registry: nil registry")))
}

// Tracker returns a collector for t. Its label is tracker. To count entries, a scrape takes
// a cut of the latest changeset: a Record whose slot is reserved but not written may then
// take another slot. It walks the changesets that were not pruned. It panics if t is nil.
func Tracker[E any](name string, t *cowchangeset.Tracker[E]) prometheus.Collector {
	return newCollector(name, metrics.Tracker(notNil(t, "Tracker: nil tracker")))
}

// Journal returns a collector for j. Its label is journal. A scrape waits for calls that
// look at the journal's state, not for the disk. It panics if j is nil.
func Journal[E any](name string, j *journal.Journal[E]) prometheus.Collector {
	return newCollector(name, metrics.Journal(notNil(j, "Journal: nil journal")))
}
