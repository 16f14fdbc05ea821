package breaker

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/latchfree/latchfree/atomicbreaker"
)

// follower hears what other replicas say. It belongs to one goroutine.
type follower[K ~string] struct {
	js jetstream.JetStream
	g  *Group[K]

	created time.Time                  // the stream that last is a sequence of
	last    uint64                     // the last message that was met
	votes   map[K]map[string]time.Time // who says that a key is open, and until when
	opened  map[K]int                  // the generation in which a hint opened a key here
	sweepAt int                        // how many keys with votes make it look for those that have ended
}

const firstSweep = 1024

func newFollower[K ~string](js jetstream.JetStream, g *Group[K]) *follower[K] {
	return &follower[K]{js: js, g: g, votes: make(map[K]map[string]time.Time), opened: make(map[K]int), sweepAt: firstSweep}
}

// run follows the stream until ctx ends, beginning again after each failure.
func (f *follower[K]) run(ctx context.Context) {
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		met := f.g.counts.heard.Load()
		err := f.follow(ctx)
		f.g.counts.connected.Store(false)
		if ctx.Err() != nil {
			return
		}
		f.g.config.OnError(err)
		if f.g.counts.heard.Load() != met {
			pause = firstPause
		}
		if !sleep(ctx, pause) {
			return
		}
	}
}

// follow meets the messages of the stream, the last of each subject first, until
// something fails.
func (f *follower[K]) follow(ctx context.Context) error {
	stream, err := f.open(ctx)
	if err != nil {
		return fmt.Errorf("breaker: open stream %s: %w", f.g.config.Stream, err)
	}
	info := stream.CachedInfo()
	if !info.Created.Equal(f.created) || info.State.LastSeq < f.last {
		f.created, f.last = info.Created, 0
		clear(f.votes)
	}
	consumer, err := stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{
		DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy, MaxResetAttempts: 1,
	})
	if err != nil {
		return fmt.Errorf("breaker: follow stream %s: %w", f.g.config.Stream, err)
	}
	messages, err := consumer.Messages(jetstream.PullHeartbeat(time.Second), jetstream.PullExpiry(5*time.Second))
	if err != nil {
		return fmt.Errorf("breaker: follow stream %s: %w", f.g.config.Stream, err)
	}
	defer messages.Stop()
	defer context.AfterFunc(ctx, messages.Stop)()
	f.g.counts.connected.Store(true)
	once(f.g.usable)
	old := info.State.Msgs > 0 // of what was in the stream before
	for {
		if !old {
			once(f.g.heard)
		}
		wait := jetstream.NextContext(ctx)
		if old {
			wait = jetstream.NextMaxWait(time.Second)
		}
		m, err := messages.Next(wait)
		if errors.Is(err, nats.ErrTimeout) {
			if old, err = f.awaits(ctx, stream); err != nil {
				return fmt.Errorf("breaker: follow stream %s: %w", f.g.config.Stream, err)
			}
			continue
		}
		if err != nil {
			return fmt.Errorf("breaker: follow stream %s: %w", f.g.config.Stream, err)
		}
		meta, err := m.Metadata()
		if err != nil {
			return fmt.Errorf("breaker: follow stream %s: %w", f.g.config.Stream, err)
		}
		seq := meta.Sequence.Stream
		old = old && seq <= info.State.LastSeq
		if seq > f.last {
			f.last = seq
			var age time.Duration
			if old {
				age = max(0, time.Since(meta.Timestamp))
			}
			f.read(m, age)
		}
		old = old && seq < info.State.LastSeq
	}
}

// awaits reports whether the stream has a message that was not met. The last one that it
// had may have expired, and then none comes.
func (f *follower[K]) awaits(ctx context.Context, stream jetstream.Stream) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	m, err := stream.GetLastMsgForSubject(ctx, f.g.config.Stream+".>")
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return false, nil
	}
	return err == nil && m.Sequence > f.last, err
}

// once closes a channel that only the follower closes, unless it has.
func once(c chan struct{}) {
	select {
	case <-c:
	default:
		close(c)
	}
}

// open returns the stream, which it makes if there is none.
func (f *follower[K]) open(ctx context.Context) (jetstream.Stream, error) {
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	name := f.g.config.Stream
	stream, err := f.js.Stream(ctx, name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		stream, err = f.js.CreateStream(ctx, jetstream.StreamConfig{
			Name: name, Description: "hints of circuit breakers", Subjects: []string{name + ".>"},
			MaxMsgsPerSubject: 1, AllowMsgTTL: true, Replicas: f.g.config.StreamReplicas,
		})
		if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) { // another replica was first
			stream, err = f.js.Stream(ctx, name)
		}
	}
	if err != nil {
		return nil, err
	}
	if err := suitable(stream.CachedInfo().Config); err != nil {
		return nil, err
	}
	return stream, nil
}

// suitable returns an error that names a setting with which the stream would refuse hints,
// or forget forced states.
func suitable(c jetstream.StreamConfig) error {
	switch {
	case c.MaxMsgsPerSubject != 1:
		return fmt.Errorf("MaxMsgsPerSubject is %d, must be 1", c.MaxMsgsPerSubject)
	case !c.AllowMsgTTL:
		return errors.New("AllowMsgTTL is off")
	case len(c.Subjects) != 1 || c.Subjects[0] != c.Name+".>":
		return fmt.Errorf("subjects are %q, must be %q", c.Subjects, c.Name+".>")
	case c.DiscardNewPerSubject:
		return errors.New("DiscardNewPerSubject is on: a newer hint could not replace an older one")
	case c.Sealed:
		return errors.New("it is sealed")
	case c.Retention != jetstream.LimitsPolicy:
		return fmt.Errorf("retention is %v, must be %v", c.Retention, jetstream.LimitsPolicy)
	case c.MaxAge > 0:
		return fmt.Errorf("MaxAge is %v: it would forget forced states", c.MaxAge)
	case c.Discard == jetstream.DiscardOld && (c.MaxMsgs > 0 || c.MaxBytes > 0):
		return fmt.Errorf("MaxMsgs is %d and MaxBytes %d with %v: it would forget forced states", c.MaxMsgs, c.MaxBytes, c.Discard)
	}
	return nil
}

// read meets one message, which was said so long ago.
func (f *follower[K]) read(m jetstream.Msg, age time.Duration) {
	f.g.counts.heard.Add(1)
	h, err := decode(f.g.config.Stream, m.Subject(), m.Data())
	if err != nil {
		f.g.config.OnError(err)
		return
	}
	if !h.Kind.isReport() {
		d := h.For
		if h.Kind == trip && d > 0 {
			if d -= age; d <= 0 {
				return
			}
		}
		h.For = d
		if f.g.obey(h) {
			f.g.counts.applied.Add(1)
		}
		return
	}
	if h.Replica == f.g.config.Replica {
		return
	}
	if rest := h.For - age; h.Kind == recovered || rest > 0 {
		f.hear(h, min(rest, f.g.config.MaxOpen))
	}
}

// hear follows the rules for a report, which is good for so long.
func (f *follower[K]) hear(h hint, rest time.Duration) {
	k := K(h.Key)
	if h.Kind == recovered {
		delete(f.votes[k], h.Replica)
		if f.live(k) < f.g.config.Quorum {
			f.relent(k)
		}
		return
	}
	if f.votes[k] == nil {
		f.sweep()
		f.votes[k] = make(map[string]time.Time)
	}
	f.votes[k][h.Replica] = time.Now().Add(rest)
	if h.Kind == tripped && f.live(k) >= f.g.config.Quorum {
		f.act(k, rest)
	}
}

// live counts the votes for k that have not ended, and forgets the others.
func (f *follower[K]) live(k K) int {
	now := time.Now()
	for replica, until := range f.votes[k] {
		if !now.Before(until) {
			delete(f.votes[k], replica)
		}
	}
	if len(f.votes[k]) == 0 {
		delete(f.votes, k)
	}
	return len(f.votes[k])
}

// sweep forgets votes that have ended once there are twice as many keys as it left last
// time.
func (f *follower[K]) sweep() {
	if len(f.votes) < f.sweepAt {
		return
	}
	for k := range f.votes {
		if f.live(k) == 0 {
			delete(f.opened, k)
		}
	}
	f.sweepAt = max(firstSweep, 2*len(f.votes))
}

// act opens k, or suspects it, since enough replicas say that it is open.
func (f *follower[K]) act(k K, rest time.Duration) {
	if f.g.suspects != nil {
		f.g.suspects.add(k, rest)
		f.g.counts.applied.Add(1)
		return
	}
	if f.g.State(k) != atomicbreaker.Closed {
		return // it knows by itself, or an operator has decided
	}
	permit, err := f.g.Allow(k)
	if err != nil {
		return
	}
	rest -= rand.N(rest/2 + 1)                      // so that the replicas do not probe together
	if permit.Trip(rest) != atomicbreaker.Tripped { // it is late if the state has changed since
		return
	}
	f.opened[k] = f.g.Snapshot(k).Generation
	f.g.counts.applied.Add(1)
}

// relent takes back what act has done for k.
func (f *follower[K]) relent(k K) {
	if f.g.suspects != nil {
		f.g.suspects.remove(k)
		return
	}
	generation, was := f.opened[k]
	if !was {
		return
	}
	delete(f.opened, k)
	if f.g.reopen(k, generation) {
		f.g.counts.applied.Add(1)
	}
}
