package atomicbreaker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/latchfree/latchfree/internal/atomics"
)

// Config holds the settings of a Breaker. The zero value means the defaults.
type Config struct {
	// Name appears in Snapshots and Events.
	Name string

	// Policy says when a closed breaker opens; nil means Consecutive(5).
	Policy Policy

	// Shadow lets every call through, for trying out settings. Otherwise the breaker works as
	// usual; Stats counts the calls that it would have rejected, whose results are Late.
	Shadow bool

	// OpenTimeout is how long the breaker stays open before it lets a probe through. It may
	// end a millisecond early, and later once in years. Zero means one minute, a negative
	// value until Reset. At most 365 days.
	OpenTimeout time.Duration

	// MaxOpenTimeout, if above OpenTimeout, makes each opening in a row last twice as long
	// as the one before, up to MaxOpenTimeout. It must not be below OpenTimeout, nor above
	// 365 days.
	//
	// It also bounds Backoff and the d of Trip(d). There, zero means ten times OpenTimeout,
	// or 365 days if that is less or OpenTimeout is negative.
	MaxOpenTimeout time.Duration

	// Jitter is the fraction of each open time that is random, from 0 to 1: with 0.1, the breaker
	// stays open for 90 to 100 % of the time. It does not apply to Trip(d), except with d zero.
	Jitter float64

	// Backoff returns how long the breaker stays open the streak-th time in a row, in place
	// of OpenTimeout. Zero or less means OpenTimeout. It is called only when settings are
	// checked, in New, NewGroup, Update, and after each PerKey, for streaks from 1 to 31;
	// longer ones count as 31.
	Backoff func(streak int) time.Duration

	// Probes is how many calls a half-open breaker may have in flight, up to 31. Calls that it admitted
	// before it became half-open do not count. Zero means 1.
	Probes int

	// CloseAfter is how many probes must succeed, with none failing, to close the breaker,
	// up to 31. Zero means 1.
	CloseAfter int

	// ProbeFailureRate makes the share of failed probes decide: when CloseAfter probes have
	// reported, the breaker opens if at least this share failed, else closes. At most 1,
	// rounded down to a millionth. Zero opens it at the first failure.
	ProbeFailureRate float64

	// ProbeTimeout is how long a probe keeps its slot: when all slots are taken and the newest
	// probe is older than this, all are free again. Calls may take longer: their results count
	// while the breaker stays half-open. Zero means OpenTimeout, but at least ten seconds. At most
	// 37 hours. After Update has shortened it, a slot may be kept for longer.
	ProbeTimeout time.Duration

	// Classify says what an error that is not nil means; nil means the function Classify.
	// ctx is that of the call, or nil in Permit.Done and Execute. An Outcome that is none
	// of the three is a Failure, and so is a panic or runtime.Goexit, which goes on.
	Classify func(ctx context.Context, err error) Outcome

	// RecordTotals counts all calls by outcome in Stats, whatever their verdict: a write to
	// a counter of the processor. In a Group, Default decides for all keys. Update cannot
	// change it.
	RecordTotals bool

	// DetailedErrors makes each rejection an allocated *OpenError, which says when to try
	// again.
	DetailedErrors bool

	// OnStateChange is called for every change of state, every Reset, and whenever overdue
	// probes lose their slots. In a Group, use GroupConfig.OnStateChange.
	OnStateChange func(Event)
}

// DefaultOpenTimeout is what a Config.OpenTimeout of zero means.
const DefaultOpenTimeout = time.Minute

const (
	defaultThreshold    = 5
	defaultMaxOpen      = 10 // times OpenTimeout
	defaultProbeTimeout = 10 * time.Second
	defaultForgetAfter  = time.Hour
)

// settings are a validated Config. They never change.
type settings struct {
	name         string
	epoch        time.Time // what deadlines are counted from
	listener     func(Event)
	listens      bool // whether events are published
	classify     func(context.Context, error) Outcome
	openTimeout  time.Duration   // latched, or positive
	growTo       time.Duration   // up to which openTimeout doubles; unused if that is latched
	maxOpen      time.Duration   // positive; of Trip and backoff
	backoff      []time.Duration // by streak-1, of Config.Backoff, or nil
	openBound    uint64          // no deadline is set further ahead, in openTicks
	probeTimeout time.Duration
	leaseBound   time.Duration // no lease is longer: the largest ProbeTimeout since New
	rules        *rules
	probes       int
	closeAfter   int
	probeRate    uint64 // of probes that must fail, in millionths; zero: one
	shadow       bool
	totals       bool // Config.RecordTotals; of a Breaker, or of a group's base
	detailed     bool
	jitter       float64
	random       func() float64 // in [0, 1); tests put another in its place
	counters     *counters
	madeFor      *settings     // of a group: the groupSettings.shared for which these were made
	quota        *openQuota    // of a group, or nil
	openLimit    int64         // how many keys may be open; 0 for all
	forgetAfter  time.Duration // of a group; 0 for never
}

// compile validates c. The epoch is taken here.
func (c *Config) compile() (*settings, error) {
	s := &settings{
		name: c.Name, epoch: atomics.Now(), classify: c.Classify,
		listener: c.OnStateChange, shadow: c.Shadow, totals: c.RecordTotals, detailed: c.DetailedErrors, jitter: c.Jitter, random: rand.Float64,
		counters: new(counters),
	}
	if !(c.Jitter >= 0 && c.Jitter <= 1) { // NaN too
		return nil, fmt.Errorf("atomicbreaker: Config.Jitter %v: must be in 0..1", c.Jitter)
	}
	var err error
	if s.rules, err = compilePolicy(c.Policy); err != nil {
		return nil, err
	}
	if s.probes, err = upTo31("Probes", c.Probes); err != nil {
		return nil, err
	}
	if s.closeAfter, err = upTo31("CloseAfter", c.CloseAfter); err != nil {
		return nil, err
	}
	if !(c.ProbeFailureRate >= 0 && c.ProbeFailureRate <= 1) { // NaN too
		return nil, fmt.Errorf("atomicbreaker: Config.ProbeFailureRate %v: must be in 0..1", c.ProbeFailureRate)
	}
	if c.ProbeFailureRate != 0 {
		s.probeRate = millionths(c.ProbeFailureRate)
	}
	if err := c.compileOpen(s); err != nil {
		return nil, err
	}
	s.probeTimeout = c.ProbeTimeout
	switch {
	case c.ProbeTimeout < 0 || c.ProbeTimeout > maxProbeTimeout:
		return nil, fmt.Errorf("atomicbreaker: Config.ProbeTimeout %v: must be in 0..%v", c.ProbeTimeout, maxProbeTimeout)
	case c.ProbeTimeout == 0:
		s.probeTimeout = min(max(s.openTimeout, defaultProbeTimeout), maxProbeTimeout) // latched is negative
	}
	s.leaseBound = s.probeTimeout
	return s, nil
}

// compileKeyed is compile for a key of a group.
func (c *Config) compileKeyed() (*settings, error) {
	if c.OnStateChange != nil {
		return nil, errors.New("atomicbreaker: Config.OnStateChange: must be nil in a Group, which has GroupConfig.OnStateChange")
	}
	return c.compile()
}

func upTo31(field string, n int) (int, error) {
	if n < 0 || n > probeMask {
		return 0, fmt.Errorf("atomicbreaker: Config.%s %d: must be in 0..%d", field, n, probeMask)
	}
	return max(n, 1), nil
}

// compileOpen fills in how long the breaker stays open.
func (c *Config) compileOpen(s *settings) error {
	switch s.openTimeout = c.OpenTimeout; {
	case s.openTimeout == 0:
		s.openTimeout = DefaultOpenTimeout
	case s.openTimeout < 0:
		s.openTimeout = latched
	case s.openTimeout > longestOpen:
		return fmt.Errorf("atomicbreaker: Config.OpenTimeout %v: must be at most %v", c.OpenTimeout, longestOpen)
	}
	s.growTo = cmp.Or(c.MaxOpenTimeout, s.openTimeout)
	switch s.maxOpen = c.MaxOpenTimeout; {
	case s.maxOpen == 0 && s.openTimeout == latched:
		s.maxOpen = longestOpen
	case s.maxOpen == 0:
		s.maxOpen = min(s.openTimeout*defaultMaxOpen, longestOpen)
	case s.maxOpen < max(0, s.openTimeout) || s.maxOpen > longestOpen:
		return fmt.Errorf("atomicbreaker: Config.MaxOpenTimeout %v: must be 0 or in %v..%v", c.MaxOpenTimeout, max(0, s.openTimeout), longestOpen)
	}
	s.openBound = ticks(s.maxOpen, openTick) + 1 // both ends of an open time are rounded down
	if c.Backoff != nil {
		s.backoff = make([]time.Duration, streakMask)
		for i := range s.backoff {
			if s.backoff[i] = c.Backoff(i + 1); s.backoff[i] <= 0 {
				s.backoff[i] = s.openTimeout
			}
			s.backoff[i] = min(s.backoff[i], s.maxOpen)
		}
	}
	return nil
}

// GroupConfig holds the settings of a Group. The zero value means the defaults.
type GroupConfig[K comparable] struct {
	// Default holds the settings of all keys without PerKey, and of those for which it
	// returns wrong ones.
	Default Config

	// PerKey returns the settings of one key. It must be fast, and return the same settings for the
	// same key. It is called for failures, errors and commands of absent keys, for their successes
	// if Default has a SlowRate, and by Update for each key in the group. If its settings are
	// wrong, those of Default hold: Stats.WrongSettings counts that, and NewGroup with PerKey(k) as
	// Default says what is wrong. If PerKey panics, the operation records at most a total.
	PerKey func(K) Config

	// ForgetAfter is how long the group remembers an unhealthy key that nobody calls: after that
	// the key is healthy. Zero means one hour, a negative value never. At most 365 days. For an
	// open or half-open key the time starts with its last call, or with the end of its open time or
	// ProbeTimeout if that is later; for a closed key with the last result that it remembers. Keys
	// that are open until Reset, ForcedOpen or Disabled stay.
	//
	// There is no timer: a forgotten key leaves the group when something changes it, in Sweep,
	// after the group has doubled, and when MaxOpen withholds failures. State and Snapshot show
	// it healthy before that, and a failure that began in time may still count.
	ForgetAfter time.Duration

	// MaxOpen is how many keys may be open or half-open at once, so that a local fault does not
	// shut off everything. Zero means no bound. A failure or GroupPermit.Trip that would open one
	// key too many is Counted, a Trip as a failure; the next one that would open the key tries
	// again. TripFuncs are not asked about a failure that is withheld. Group.Trip and HalfOpen open
	// keys beyond the bound, and these count; ForcedOpen keys do not. Lowering the bound closes no
	// key.
	MaxOpen int

	// OnStateChange is called for every change of a key: for one key in order, for
	// different keys concurrently. A key stays in the group until its events are delivered.
	OnStateChange func(K, Event)
}

// groupSettings are a validated GroupConfig. They never change.
type groupSettings[K comparable] struct {
	config *GroupConfig[K]
	shared *settings // of all keys if PerKey is nil, and of those with wrong ones

	// hashes says that every key must be hashed, even if none is stored: to find out
	// whether that panics, or as permits must say when calls began.
	hashes bool
}

// compile validates c.
func (c GroupConfig[K]) compile() (*groupSettings[K], error) {
	switch {
	case c.MaxOpen < 0:
		return nil, fmt.Errorf("atomicbreaker: GroupConfig.MaxOpen %d: must not be negative", c.MaxOpen)
	case c.ForgetAfter > longestOpen:
		return nil, fmt.Errorf("atomicbreaker: GroupConfig.ForgetAfter %v: must be at most %v", c.ForgetAfter, longestOpen)
	}
	shared, err := c.Default.compileKeyed()
	if err != nil {
		return nil, fmt.Errorf("%w (in GroupConfig.Default)", err)
	}
	shared.madeFor, shared.openLimit = shared, int64(c.MaxOpen)
	shared.forgetAfter = max(cmp.Or(c.ForgetAfter, defaultForgetAfter), 0)
	shared.listens = c.OnStateChange != nil
	return &groupSettings[K]{config: &c, shared: shared}, nil
}

// settingsOf returns the settings of a key: those that PerKey has returned, or those of
// GroupConfig.Default if they are wrong. It may call PerKey.
func (g *group[K]) settingsOf(k K) *settings {
	set := g.set.Load()
	if set.config.PerKey == nil {
		return set.shared
	}
	c := set.config.PerKey(k)
	s, err := c.compileKeyed()
	if err != nil {
		g.wrong.Add(1)
		return set.shared
	}
	s.madeFor, s.forgetAfter, s.openLimit = set.shared, set.shared.forgetAfter, set.shared.openLimit
	return g.adopt(s)
}

// adopt gives settings, which are not shared yet, what depends on the group.
func (g *group[K]) adopt(s *settings) *settings {
	s.epoch, s.listens, s.counters, s.quota = g.epoch, g.listens, &g.counters, &g.quota
	s.totals = false // the group counts them
	return s
}

// renew gives a cell the settings that the group has now, if it has others. It calls PerKey.
//
// It retries only if another caller has renewed them, or Update has come again.
func (g *group[K]) renew(c *cell[K]) {
	for {
		held := c.set.Load()
		if held.madeFor == g.set.Load().shared {
			return
		}
		next := g.settingsOf(c.key)
		if lacking := *next; lacking.inherit(held) {
			next = &lacking
		}
		c.set.CompareAndSwap(held, next)
	}
}
