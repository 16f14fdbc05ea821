package api

import "time"

// Kinds of lines of the audit trail, and the fields that they have besides Kind.
const (
	// KindChange: a change as it is in a changeset now: Change, Changeset, Ordinal, Seq.
	KindChange = "change"
	// KindRecorded: the receipt of a change, as its caller got it: ChangeID, Changeset,
	// Ordinal, Seq.
	KindRecorded = "recorded"
	// KindStarted: a changeset was started: Changeset, Ordinal, Plan.
	KindStarted = "started"
	// KindSealed: a changeset was sealed by a request: Changeset, Count.
	KindSealed = "sealed"
	// KindApplied: a changeset was applied: Changeset, Key, Database, Engine, Changes,
	// Count, Replayed.
	KindApplied = "applied"
	// KindAction: an action got a version: Name, Version, Action.
	KindAction = "action"
	// KindPlan: a plan got a version: Name, Version, PlanValue.
	KindPlan = "plan"
	// KindEngine: an engine was opened: Database, Engine.
	KindEngine = "engine_opened"
	// KindEngineClosed: an engine was closed: Database, Engine.
	KindEngineClosed = "engine_closed"
	// KindResult: a strategy's call ended, or was rejected: Strategy, Outcome, Verdict,
	// Run, Plan.
	KindResult = "breaker_result"
	// KindTransition: a breaker changed its state: Strategy, From, To, Generation,
	// Failures, Reason. Only latchfree and replicas have them.
	KindTransition = "breaker_transition"
	// KindReset: a request has reset the breaker of Strategy or, without one, of all.
	KindReset = "breaker_reset"
	// KindStrategy: a strategy got a version: Strategy, Version, URL.
	KindStrategy = "strategy"
	// KindProcess: the service has started: Store.
	KindProcess = "process"
)

// AuditLine is one line of the audit trail. Events come first, in the order in which
// they were written, and then the changes of all changesets, as they are at a later
// moment: so each receipt's change is there.
type AuditLine struct {
	Kind string    `json:"kind"`
	N    uint64    `json:"n,omitempty"` // counts the events from 1; 0 for KindChange
	At   time.Time `json:"at,omitzero"`

	Changeset string  `json:"changeset,omitempty"`
	Ordinal   uint64  `json:"ordinal,omitempty"`
	Seq       uint64  `json:"seq,omitempty"`
	Change    *Change `json:"change,omitempty"`
	ChangeID  string  `json:"change_id,omitempty"`

	Key      string   `json:"key,omitempty"`
	Database string   `json:"database,omitempty"`
	Engine   uint64   `json:"engine,omitempty"`
	Changes  []string `json:"changes,omitempty"` // IDs, in order
	Count    int      `json:"count,omitempty"`
	Replayed bool     `json:"replayed,omitempty"`

	Name      string  `json:"name,omitempty"`
	Version   uint64  `json:"version,omitempty"`
	Action    *Action `json:"action,omitempty"`
	PlanValue *Plan   `json:"plan_value,omitempty"`

	Plan       string `json:"plan,omitempty"`
	Run        string `json:"run,omitempty"`
	Strategy   string `json:"strategy,omitempty"`
	URL        string `json:"url,omitempty"`
	Outcome    string `json:"outcome,omitempty"`
	Verdict    string `json:"verdict,omitempty"`
	From       string `json:"from,omitempty"`
	To         string `json:"to,omitempty"`
	Generation uint64 `json:"generation,omitempty"`
	Failures   int    `json:"failures,omitempty"`
	Reason     string `json:"reason,omitempty"`
	Store      string `json:"store,omitempty"`
}
