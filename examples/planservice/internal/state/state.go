// Package state says what planservice needs of its four shared structures. Its
// subpackages implement them: latchfree with the library, naive with the algorithms of
// the defect reports, locked with one mutex for each structure, and clustered with the
// library's packages for replicas that agree.
package state

import (
	"context"
	"errors"
	"iter"
	"strings"
	"unicode"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/latchfree/latchfree/examples/planservice/api"
	"github.com/latchfree/latchfree/examples/planservice/internal/engine"
)

var (
	ErrExists      = errors.New("name is taken")
	ErrNotFound    = errors.New("not found")
	ErrConflict    = errors.New("another version is present")
	ErrInvalidName = errors.New("invalid name")
	ErrNoActive    = errors.New("no changeset is open")
	ErrIndex       = errors.New("list index out of range") // of naive alone
	ErrApplying    = errors.New("changeset is being applied")
	ErrApplied     = errors.New("changeset has been applied")
	ErrRejected    = errors.New("breaker rejects the call")
	// Of clustered alone:
	ErrUnavailable = errors.New("the replicas have no majority") // nothing was done
	ErrUnknown     = errors.New("no answer of the other replicas: it may have been done, or be done later")
	ErrElsewhere   = errors.New("changeset is open at another replica")
)

// Set is one implementation of all four.
type Set struct {
	Name       string
	Replica    string // which one this is, with clustered
	Actions    Registry[api.Action]
	Plans      Registry[api.Plan]
	Strategies Registry[api.Strategy]
	Changesets Changesets
	Breakers   Breakers
	Engines    Engines
	Collectors []prometheus.Collector // of what the structures count by themselves; naive and locked have none
	// Fresh, unless nil, says why what is read may be too old.
	Fresh func() error
	// Mirrors, unless nil, returns the copies that are read.
	Mirrors func() []api.Mirror
	// EngineCache, unless nil, returns what the cache of engines has counted.
	EngineCache func() api.EngineCache
	// Close, unless nil, ends what is below the structures, when all of them are closed.
	Close func(context.Context) error
}

// Entry is what a registry has under a name.
type Entry[V any] struct {
	Name    string // normalised
	Version uint64
	Value   V // must not be changed
}

// Registry keeps values by name. Reads are local; writes may wait for other machines.
type Registry[V any] interface {
	// Create returns ErrExists if the name is taken.
	Create(ctx context.Context, name string, v V) (Entry[V], error)
	// Get returns ErrNotFound if there is none.
	Get(name string) (Entry[V], error)
	// Update returns ErrConflict unless the value has the version.
	Update(ctx context.Context, name string, version uint64, v V) (Entry[V], error)
	All() iter.Seq[Entry[V]]
}

// Changesets keeps changes, each in the changeset that was current.
type Changesets interface {
	// Start makes a changeset, which is current from then on.
	Start(ctx context.Context, plan string) (api.Changeset, error)
	// Record adds to the current changeset, or returns ErrNoActive.
	Record(ctx context.Context, c api.Change) (api.Receipt, error)
	// Seal ends a changeset.
	Seal(ctx context.Context, id string) (api.Changeset, error)
	// Apply seals a changeset and gives its changes to fn. It returns ErrApplied if fn has
	// succeeded before, and ErrApplying while it runs.
	Apply(ctx context.Context, id string, fn func(context.Context, []api.Change) error) error
	Get(ctx context.Context, id string) (api.Changeset, error)
	// All yields the changesets, the oldest first.
	All() iter.Seq[api.Changeset]
	// Trail yields all changes where they are.
	Trail() iter.Seq2[api.Receipt, api.Change]
	// Close writes what is not written yet.
	Close(ctx context.Context) error
}

// Breakers keeps a circuit breaker for each strategy.
type Breakers interface {
	// Allow returns ErrRejected, or a function that gets the result of the call and
	// returns what the breaker made of it.
	Allow(strategy string) (done func(error) (verdict string), err error)
	Reset(strategy string)
	ResetAll()
	Get(strategy string) api.Breaker
}

// Engines keeps an engine for each URL.
type Engines interface {
	// Acquire opens the engine if there is none. The caller calls release once.
	Acquire(ctx context.Context, url string) (e *engine.Engine, release func(), err error)
	All() iter.Seq[*engine.Engine]
	Close(ctx context.Context) error
}

// Opener makes an engine. The Engines that calls it closes it by its Close.
type Opener func(ctx context.Context, url string) (*engine.Engine, error)

// MaxName is how many bytes a name may have.
const MaxName = 100

// Normalize returns the one spelling of a name: in lower case, with a hyphen for white
// space. It accepts letters, digits and ".", "_", "-".
func Normalize(name string) (string, error) {
	if len(name) > 4*MaxName {
		return "", ErrInvalidName
	}
	name = strings.ToLower(strings.Join(strings.Fields(name), "-"))
	if name == "" || len(name) > MaxName || name == "." || name == ".." {
		return "", ErrInvalidName
	}
	for _, r := range name {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("._-", r) || r == unicode.ReplacementChar {
			return "", ErrInvalidName
		}
	}
	return name, nil
}
