// Package service is planservice without HTTP.
package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/cowchangeset/journal"
	"github.com/latchfree/latchfree/examples/planservice/api"
	"github.com/latchfree/latchfree/examples/planservice/internal/audit"
	"github.com/latchfree/latchfree/examples/planservice/internal/engine"
	"github.com/latchfree/latchfree/examples/planservice/internal/pool"
	"github.com/latchfree/latchfree/examples/planservice/internal/state"
	"github.com/latchfree/latchfree/examples/planservice/internal/state/latchfree"
	"github.com/latchfree/latchfree/examples/planservice/internal/state/locked"
	"github.com/latchfree/latchfree/examples/planservice/internal/state/naive"
)

// Config holds the settings. Zero values stand for the defaults of the fields.
type Config struct {
	Store           string        // latchfree, naive, locked or clustered; latchfree
	Cluster         *Cluster      // of clustered
	Database        string        // URL for changes; memory:plans
	Journal         string        // folder; in memory if empty
	NoSync          bool          // do not fsync the journals for each call
	Workers         int           // 16
	Queue           int           // of tasks that wait for a worker; 1024
	StrategyTimeout time.Duration // 5 s
	Threshold       int           // failures in a row that open a breaker; 3
	OpenTimeout     time.Duration // of breakers; 5 s
	EngineIdle      time.Duration // after which an unused engine of a file is closed; 1 min
	MemoryDatabases int           // that clients may open in memory at most; 100
	SlowOpen        time.Duration // of databases memory:slow-NAME, to try what that does
	SlowApply       time.Duration // of an apply to one
	Pause           time.Duration // of naive between steps; it yields if 0
	Strategies      []api.Strategy
	Log             *slog.Logger // slog.Default
	Client          *http.Client // for strategies; one of its own
}

// Cluster holds the settings of a replica.
type Cluster struct {
	Replica int           // its number
	Peers   []string      // HOST:PORT at which each replica, this one too, listens for the others
	Secret  string        // that the replicas show each other
	Folder  string        // of the engine's files
	MaxLag  time.Duration // how old what is read may be while the replica is ready; 15 s
	// Leave is called when nothing is left to be done, and waits until the others need this
	// replica no more, or ctx ends.
	Leave func(ctx context.Context)
}

// Service is the running service. It may be used concurrently.
type Service struct {
	config   Config
	log      *slog.Logger
	set      state.Set
	audit    *audit.Log
	pool     *pool.Pool
	client   *http.Client
	engines  atomic.Uint64 // numbers of engines
	inMemory atomic.Int64  // engines in memory that clients have named
	counters counters
	since    time.Time
	stopping atomic.Bool
	history  cowchangeset.Slice[Sample]
	metrics  *prometheus.Registry
}

// New opens the journals, takes over what they have, and starts the workers.
func New(ctx context.Context, c Config) (s *Service, err error) {
	if err := c.complete(); err != nil {
		return nil, err
	}
	s = &Service{config: c, log: c.Log, client: c.Client, since: time.Now()}
	if s.pool, err = pool.New(c.Workers, c.Queue); err != nil {
		return nil, err
	}
	if err := s.open(ctx); err != nil {
		return nil, errors.Join(err, s.Close(ctx))
	}
	return s, nil
}

func (c *Config) complete() error {
	setDefault(&c.Store, "latchfree")
	setDefault(&c.Database, engine.Memory+"plans")
	setDefault(&c.Workers, 16)
	setDefault(&c.Queue, 1024)
	setDefault(&c.StrategyTimeout, 5*time.Second)
	setDefault(&c.Threshold, 3)
	setDefault(&c.OpenTimeout, 5*time.Second)
	setDefault(&c.EngineIdle, time.Minute)
	setDefault(&c.MemoryDatabases, 100)
	setDefault(&c.Log, slog.Default())
	if c.Client == nil {
		c.Client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: c.Workers, IdleConnTimeout: time.Minute}}
	}
	switch {
	case !slices.Contains([]string{"latchfree", "naive", "locked", "clustered"}, c.Store):
		return fmt.Errorf("unknown store %q: want latchfree, naive or locked", c.Store)
	case (c.Store == "clustered") != (c.Cluster != nil):
		return errors.New("the store clustered, and no other, belongs to a replica")
	case c.Journal != "" && (c.Store == "naive" || c.Store == "locked"):
		return fmt.Errorf("the store %q has no journal", c.Store)
	case c.Threshold < 1:
		return fmt.Errorf("threshold is %d", c.Threshold)
	case c.MemoryDatabases < 1:
		return fmt.Errorf("memory databases is %d", c.MemoryDatabases)
	case c.StrategyTimeout < 0 || c.EngineIdle < 0 || c.Pause < 0:
		return errors.New("a duration is negative")
	case c.Queue < maxStrategies:
		return fmt.Errorf("queue is %d: want %d at least, for the largest plan", c.Queue, maxStrategies)
	}
	for _, st := range c.Strategies {
		if err := checkURL(st); err != nil {
			return fmt.Errorf("strategy %q: %w", st.Name, err)
		}
	}
	return nil
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

func (s *Service) open(ctx context.Context) error {
	o := journal.Options{}
	if s.config.NoSync {
		o.Sync = journal.SyncNever
	}
	events := ""
	var changes *journal.Journal[api.Change]
	if folder := s.config.Journal; folder != "" {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return err
		}
		events = filepath.Join(folder, "events")
		if s.config.Store == "latchfree" {
			var err error
			if changes, err = journal.Open[api.Change](filepath.Join(folder, "changes"), o); err != nil {
				return err
			}
		}
	}
	var err error
	if s.audit, err = audit.Open(ctx, events, o); err != nil {
		if changes != nil {
			err = errors.Join(err, changes.Close())
		}
		return err
	}
	if s.set, err = s.newSet(ctx, changes); err != nil {
		if changes != nil {
			err = errors.Join(err, changes.Close())
		}
		return err
	}
	if err := s.audit.Write(api.AuditLine{Kind: api.KindProcess, Store: s.set.Name}); err != nil {
		return err
	}
	if err := s.configureStrategies(ctx); err != nil {
		return err
	}
	return s.register()
}

func (s *Service) newSet(ctx context.Context, changes *journal.Journal[api.Change]) (state.Set, error) {
	switch s.config.Store {
	case "naive":
		return withStrategies(naive.New(naive.Config{Open: s.openEngine, Threshold: s.config.Threshold, Step: s.pause}))
	case "locked":
		return withStrategies(locked.New(s.openEngine, s.config.Threshold))
	case "clustered":
		return s.newReplica(ctx)
	}
	c := latchfree.Config{
		Open:         s.openEngine,
		IdleTimeout:  s.config.EngineIdle,
		Threshold:    s.config.Threshold,
		OpenTimeout:  s.config.OpenTimeout,
		OnTransition: s.onTransition,
		Journal:      changes,
	}
	s.restore(&c)
	return latchfree.New(ctx, c)
}

// withStrategies adds a registry of strategies, which is the same with naive and locked.
func withStrategies(set state.Set) (state.Set, error) {
	strategies, err := latchfree.NewRegistry[api.Strategy]("strategies", 0, nil)
	set.Strategies, set.Collectors = strategies, strategies.Collectors()
	return set, err
}

// pause lets other goroutines run between the steps of an operation of naive.
func (s *Service) pause(string) {
	if s.config.Pause == 0 {
		runtime.Gosched()
	} else {
		time.Sleep(s.config.Pause)
	}
}

// Stop makes Ready false.
func (s *Service) Stop() { s.stopping.Store(true) }

// Ready reports whether the service accepts work.
func (s *Service) Ready() bool { return s.Unready() == nil }

// Unready returns why the service should get no work, or nil.
func (s *Service) Unready() error {
	switch {
	case s.stopping.Load():
		return ErrStopping
	case s.set.Fresh != nil:
		return s.set.Fresh()
	}
	return nil
}

// Close waits for the runs that were accepted, writes what is not written, and closes
// engines and journals. Other methods must not be called any more.
func (s *Service) Close(ctx context.Context) error {
	s.Stop()
	err := s.pool.Close(ctx)
	if s.set.Changesets != nil {
		err = errors.Join(err, s.set.Engines.Close(ctx), s.set.Changesets.Close(ctx))
	}
	if s.set.Close != nil {
		err = errors.Join(err, s.set.Close(ctx)) // breakers write to the trail until then
	}
	if s.audit != nil {
		err = errors.Join(err, s.audit.Close(ctx))
	}
	s.client.CloseIdleConnections()
	return err
}

// note writes an event whose loss must not undo what has happened.
func (s *Service) note(line api.AuditLine) {
	if err := s.audit.Write(line); err != nil {
		s.log.Error("event is not in the audit trail", "kind", line.Kind, "error", err)
	}
}
