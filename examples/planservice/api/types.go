package api

import "time"

// Action is something that a plan does. Its name is normalised by the service.
type Action struct {
	Name        string            `json:"name"`
	Description string            `json:"description,omitempty"`
	Parameters  map[string]string `json:"parameters,omitempty"`
}

// Plan is a list of actions, which each of its strategies carries out.
type Plan struct {
	Name        string   `json:"name"`
	Description string   `json:"description,omitempty"`
	Actions     []string `json:"actions"`
	Strategies  []string `json:"strategies"`
}

// Stored is a value with its version, which is also the ETag of its response.
type Stored[T any] struct {
	Version uint64 `json:"version"`
	Value   T      `json:"value"`
}

// Strategy is a way to carry out a plan: an HTTP endpoint, or the built-in one
// named Direct, which has no URL.
type Strategy struct {
	Name string `json:"name"`
	URL  string `json:"url,omitempty"`
}

// Direct is the built-in strategy: it makes one change for each action.
const Direct = "direct"

// StrategyCall is what the service posts to a strategy's URL. An answer with a
// status from 200 to 299 is a success, and any other or none is a failure.
type StrategyCall struct {
	Run      string   `json:"run"`
	Plan     string   `json:"plan"`
	Strategy string   `json:"strategy"`
	Actions  []string `json:"actions"`
}

// StrategyAnswer is the body of a successful answer. Without a body the strategy has
// made one change for each action.
type StrategyAnswer struct {
	Changes []StrategyChange `json:"changes"`
}

// StrategyChange is one change that a strategy has made.
type StrategyChange struct {
	Action string `json:"action"`
	Value  string `json:"value,omitempty"`
}

// Change is one entry of a changeset. The service makes up an ID if there is none.
// Clients keep IDs unique; the service does not compare them.
type Change struct {
	ID       string `json:"id"`
	Plan     string `json:"plan"`
	Run      string `json:"run,omitempty"`
	Strategy string `json:"strategy,omitempty"`
	Action   string `json:"action,omitempty"`
	Value    string `json:"value,omitempty"`
}

// Receipt says where the service has recorded a change.
type Receipt struct {
	Change    string `json:"change"`
	Changeset string `json:"changeset"`
	Ordinal   uint64 `json:"ordinal"`
	Seq       uint64 `json:"seq"`
}

// Changeset is the state of one changeset. A successor seals the one before it.
type Changeset struct {
	ID      string `json:"id"`
	Replica string `json:"replica,omitempty"` // that has it, in a cluster; ordinals are its own
	Ordinal uint64 `json:"ordinal"`
	Plan    string `json:"plan,omitempty"`
	Changes int    `json:"changes"`
	Sealed  bool   `json:"sealed"`
	Applied bool   `json:"applied"`
}

// StartChangeset is the body of a request that starts a changeset.
type StartChangeset struct {
	Plan string `json:"plan"`
}

// RunPlan is the body of a request that runs a plan. It may be left out.
type RunPlan struct {
	// Start starts a changeset for the plan first.
	Start bool `json:"start,omitempty"`
}

// Run is the result of running a plan: one result for each strategy, in the order of
// the plan's.
type Run struct {
	ID      string      `json:"id"`
	Plan    string      `json:"plan"`
	Results []RunResult `json:"results"`
}

// Outcomes of a strategy in a run.
const (
	OutcomeSuccess   = "success"   // it was called, and succeeded
	OutcomeFailure   = "failure"   // it was called, and failed
	OutcomeRejected  = "rejected"  // its breaker did not let the call through
	OutcomeCancelled = "cancelled" // the caller left; the breaker counts nothing
)

// RunResult is what became of one strategy in a run. Outcome is about the call of the
// strategy alone: Error may also say that its changes could not be recorded.
type RunResult struct {
	Strategy string    `json:"strategy"`
	Outcome  string    `json:"outcome"`
	Verdict  string    `json:"verdict,omitempty"` // Counted, Late, Tripped, Recovered
	Error    string    `json:"error,omitempty"`
	Receipts []Receipt `json:"receipts,omitempty"`
}

// ApplyChangeset is the body of a request that applies changesets. It may be left out.
type ApplyChangeset struct {
	// Database is "memory:NAME", or empty for the service's own.
	Database string `json:"database,omitempty"`
}

// Applied says that a changeset was applied.
type Applied struct {
	Changeset string `json:"changeset"`
	Key       string `json:"key"`
	Database  string `json:"database"`
	Engine    uint64 `json:"engine"`
	Changes   int    `json:"changes"`
	// Replayed says that the database had it already, from an earlier request.
	Replayed bool `json:"replayed,omitempty"`
}

// Engine is an open database.
type Engine struct {
	URL    string `json:"url"`
	Number uint64 `json:"number"` // unique in the process
}

// EngineCache has the counts of the cache of engines.
type EngineCache struct {
	Hits    uint64 `json:"hits"`    // calls that found an engine
	Created uint64 `json:"created"` // engines that were opened
	Closed  uint64 `json:"closed"`  // engines that were closed
}

// Breaker is the state of a strategy's breaker. Strategies without failures have none.
type Breaker struct {
	Strategy   string `json:"strategy"`
	State      string `json:"state"`    // Closed, Open, HalfOpen
	Failures   int    `json:"failures"` // in a row
	Generation uint64 `json:"generation"`
	RetryAfter int64  `json:"retry_after_ms,omitempty"` // milliseconds; -1 until a reset
}

// Status is what the status page shows.
type Status struct {
	At         time.Time      `json:"at"`
	Store      string         `json:"store"`
	Since      time.Time      `json:"since"`
	Ready      bool           `json:"ready"`
	Stopping   bool           `json:"stopping,omitempty"`
	Replica    string         `json:"replica,omitempty"` // that answers, in a cluster
	Mirrors    []Mirror       `json:"mirrors,omitempty"` // what it reads, in a cluster
	Counts     Counts         `json:"counts"`
	Plans      []Stored[Plan] `json:"plans"`
	Changesets []Changeset    `json:"changesets"` // the latest ones, newest first
	Breakers   []Breaker      `json:"breakers"`   // one for each strategy
	Engines    []Engine       `json:"engines"`
	// EngineCache is nil where the store does not count.
	EngineCache *EngineCache `json:"engine_cache,omitempty"`
}

// Mirror is a replica's copy of a bucket.
type Mirror struct {
	Bucket   string `json:"bucket"`
	Entries  int    `json:"entries"`
	Revision uint64 `json:"revision"` // of the bucket, which the copy has come to
	Lag      int64  `json:"lag_ms"`   // for how long it may have missed writes, in milliseconds
	Stale    bool   `json:"stale"`    // that is longer than it may be, and the replica is not ready
	Attached bool   `json:"attached"` // it follows the bucket
	Error    string `json:"error,omitempty"`
}

// Counts are totals since the process began.
type Counts struct {
	Requests   uint64 `json:"requests"`
	Actions    uint64 `json:"actions"` // that there are
	Plans      uint64 `json:"plans"`   // that there are
	Runs       uint64 `json:"runs"`
	Successes  uint64 `json:"successes"`  // calls of strategies
	Failures   uint64 `json:"failures"`   // calls of strategies
	Rejected   uint64 `json:"rejected"`   // calls of strategies
	Cancelled  uint64 `json:"cancelled"`  // calls of strategies
	Started    uint64 `json:"started"`    // changesets
	Applied    uint64 `json:"applied"`    // changesets
	Recorded   uint64 `json:"recorded"`   // changes
	Unrecorded uint64 `json:"unrecorded"` // changes that were refused or failed
	Written    uint64 `json:"written"`    // changes in databases
	Busy       int    `json:"busy"`       // workers that call a strategy
	Workers    int    `json:"workers"`
	Queued     int    `json:"queued"`
}
