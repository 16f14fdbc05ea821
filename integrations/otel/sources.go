package latchotel

import (
	"github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/atomicbreaker/retrybudget"
	"github.com/latchfree/latchfree/atomicbreaker/throttle"
	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/cowchangeset/journal"
	"github.com/latchfree/latchfree/internal/metrics"
	"github.com/latchfree/latchfree/oncecache"
	"github.com/latchfree/latchfree/shardedregistry"
	"go.opentelemetry.io/otel/metric"
)

// Breaker registers the metrics of b. It panics if meter or b is nil.
func Breaker(meter metric.Meter, name string, b *atomicbreaker.Breaker) (metric.Registration, error) {
	needMeter(meter, "Breaker")
	return register(meter, name, metrics.Breaker(notNil(b, "Breaker: nil breaker")))
}

// Throttle registers the metrics of t. It panics if meter or t is nil.
func Throttle(meter metric.Meter, name string, t *throttle.Throttle) (metric.Registration, error) {
	needMeter(meter, "Throttle")
	return register(meter, name, metrics.Throttle(notNil(t, "Throttle: nil throttle")))
}

// RetryBudget registers the metrics of b. It panics if meter or b is nil.
func RetryBudget(meter metric.Meter, name string, b *retrybudget.Budget) (metric.Registration, error) {
	needMeter(meter, "RetryBudget")
	return register(meter, name, metrics.RetryBudget(notNil(b, "RetryBudget: nil budget")))
}

// DefaultMaxKeys is what a GroupOptions.MaxKeys of zero means.
const DefaultMaxKeys = metrics.DefaultMaxKeys

// OtherKeys is the value of the attribute key for all keys that have none of their own.
const OtherKeys = metrics.OtherKeys

// GroupOptions holds the settings of the metrics of a Group. The zero value means the
// defaults.
type GroupOptions[K comparable] struct {
	// MaxKeys is how many keys have their own value of the attribute key at a time. They are the
	// worst: those that reject calls come first, then those with more failures, then those
	// whose label is less. All others are summed under OtherKeys. Zero means 20, and less
	// than zero means none.
	MaxKeys int

	// Label returns the value of the attribute key. Keys with the same label are summed, so it
	// can also put keys in classes. Nil means fmt.Sprint. It is called at each collection for
	// each key that is in the group. If it panics or calls runtime.Goexit, the collection of
	// this group has an error and nothing else.
	Label func(K) string
}

// Group registers the metrics of g. A collection walks the keys in the group, which are
// those that fail or have failed, and locks one bucket at a time. It panics if meter or g
// is nil.
func Group[K comparable](meter metric.Meter, name string, g *atomicbreaker.Group[K], o GroupOptions[K]) (metric.Registration, error) {
	needMeter(meter, "Group")
	return register(meter, name, metrics.Group(notNil(g, "Group: nil group"), metrics.GroupOptions[K](o)))
}

// CacheOptions says which metrics a Cache has besides the usual ones.
type CacheOptions struct {
	// Flights adds the creations that are under way. A collection then walks all entries
	// of the cache, and locks one bucket at a time.
	Flights bool
}

// Cache registers the metrics of c: those of look-ups if c counts them, which is
// Config.RecordStats. It panics if meter or c is nil.
func Cache[K comparable, V any](meter metric.Meter, name string, c *oncecache.Cache[K, V], o CacheOptions) (metric.Registration, error) {
	needMeter(meter, "Cache")
	return register(meter, name, metrics.Cache(notNil(c, "Cache: nil cache"), o.Flights))
}

// Registry registers the metrics of r. It panics if meter or r is nil.
func Registry[K comparable, V any](meter metric.Meter, name string, r *shardedregistry.Registry[K, V]) (metric.Registration, error) {
	needMeter(meter, "Registry")
	return register(meter, name, metrics.Registry(notNil(r, "Registry: nil registry")))
}

// Tracker registers the metrics of t. To count entries, a collection takes a cut of the
// latest changeset: a Record whose slot is reserved but not written may then take another
// slot. It walks the changesets that were not pruned. It panics if meter or t is nil.
func Tracker[E any](meter metric.Meter, name string, t *cowchangeset.Tracker[E]) (metric.Registration, error) {
	needMeter(meter, "Tracker")
	return register(meter, name, metrics.Tracker(notNil(t, "Tracker: nil tracker")))
}

// Journal registers the metrics of j. A collection waits for calls that look at the
// journal's state, not for the disk. It panics if meter or j is nil.
func Journal[E any](meter metric.Meter, name string, j *journal.Journal[E]) (metric.Registration, error) {
	needMeter(meter, "Journal")
	return register(meter, name, metrics.Journal(notNil(j, "Journal: nil journal")))
}
