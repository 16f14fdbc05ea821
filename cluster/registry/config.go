package registry

import (
	"fmt"
	"time"

	"github.com/latchfree/latchfree/internal/values"
)

const (
	defaultHeartbeat = time.Second
	minHeartbeat     = 100 * time.Millisecond // the server refuses shorter ones
	defaultTimeout   = 2 * time.Second

	minMaxLag = 300 * time.Millisecond
	// Beats for Config.MaxLag begin this often while that time passes: see "Shared beats" in DESIGN.md.
	beatsPerLag = 6
)

// Codec turns values into what the bucket stores, and back. Its methods, Encode and Decode, are called by
// any number of goroutines at once. Decode must neither change nor keep its argument. What it
// returns is shared by all readers of the key.
//
// A Decode that fails, panics or calls [runtime.Goexit] makes the value a foreign
// one: see Config.OnForeign.
type Codec[V any] = values.Codec[V]

// JSON is the codec of a Config that names none: it uses [encoding/json]. Numbers in an any are
// decoded as json.Number.
type JSON[V any] = values.JSON[V]

// Foreign is something in the bucket that the registry does not show.
type Foreign struct {
	Key      string // as the bucket has it
	Revision Version
	Err      error // why it is not shown
}

// Config holds the settings of a Registry. Its zero value stands for the defaults.
type Config[K ~string, V any] struct {
	// Codec turns values into bytes and back. Nil stands for JSON.
	Codec Codec[V]

	// Normalize returns the one spelling under which a key is stored, here and in the
	// bucket, or an error if the key is invalid: see shardedregistry.Config. All replicas
	// must use the same. A key of the bucket that it changes or rejects, which somebody else
	// has written, is a foreign one: see OnForeign. It also runs on the goroutine that keeps
	// the mirror. Nil stores keys as they are.
	Normalize func(K) (K, error)

	// Indexes are functions that return the values by which ByIndex finds an entity,
	// as in shardedregistry.Config. They run on the goroutine that keeps the mirror.
	// If one panics or calls [runtime.Goexit], the value is a foreign one.
	//
	// There are no unique indexes, since a mirror cannot stop other writers.
	Indexes map[string]func(K, V) []string

	// MaxLag is the bound for Fresh: how old the mirror may be. With it, the replicas of
	// a bucket see to it that one of them writes a sync message six times in MaxLag. They agree on
	// that by messages under "latchfree.beat.BUCKET", to which they should be allowed to
	// publish and subscribe: one that cannot writes sync messages of its own.
	// 0 sets no bound, and writes nothing. At least 300 ms.
	MaxLag time.Duration

	// Heartbeat is how often the server that feeds the mirror says that there is
	// nothing to tell. If nothing comes for three times as long, the mirror attaches to
	// another one. 0 stands for 1 s. At least 100 ms.
	Heartbeat time.Duration

	// Timeout is how long a single request waits for its answer before it is sent
	// again, as often as the caller's context allows. 0 stands for 2 s.
	Timeout time.Duration

	// OnForeign is told of each key that is no key of the registry, and of each
	// value that cannot be decoded or indexed. Such a key is absent here. It runs on
	// the goroutine that keeps the mirror, which waits for it. A panic, and
	// [runtime.Goexit], have no effect.
	OnForeign func(Foreign)
}

// withDefaults returns c with the defaults in place of zero values, or an error that
// names the setting that is not valid.
func (c Config[K, V]) withDefaults() (Config[K, V], error) {
	if c.Codec == nil {
		c.Codec = JSON[V]{}
	}
	if c.Heartbeat == 0 {
		c.Heartbeat = defaultHeartbeat
	}
	if c.Timeout == 0 {
		c.Timeout = defaultTimeout
	}
	switch {
	case c.Heartbeat < minHeartbeat:
		return c, fmt.Errorf("registry: Heartbeat is %v, and must be 0 or at least %v", c.Heartbeat, minHeartbeat)
	case c.Timeout < 0:
		return c, fmt.Errorf("registry: Timeout is %v, and must not be negative", c.Timeout)
	case c.MaxLag < 0 || c.MaxLag > 0 && c.MaxLag < minMaxLag:
		return c, fmt.Errorf("registry: MaxLag is %v, and must be 0 or at least %v", c.MaxLag, minMaxLag)
	}
	return c, nil
}
