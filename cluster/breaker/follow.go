package breaker

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/latchfree/latchfree/atomicbreaker"
)

// follower hears what other replicas say. It belongs to one goroutine.
type follower[K ~string] struct {
	js jetstream.JetStream
	g  *Group[K]

	created time.Time                  // the stream that last is a sequence of
	last    uint64                     // the last message that was met
	newest  time.Time                  // the latest time of a message that was met
	began   uint64                     // the last message of the stream when it began to follow
	stalled bool                       // a message behind the last one is not delivered
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
	stored := f.g.acked.Load() // before the stream is asked where it ends
	stream, err := f.open(ctx)
	if err == nil {
		err = f.followStream(ctx, stream, stored)
	}
	return fmt.Errorf("breaker: follow stream %s: %w", f.g.config.Stream, err)
}

func (f *follower[K]) followStream(ctx context.Context, stream jetstream.Stream, stored uint64) error {
	info := stream.CachedInfo()
	if f.restored(info, stored) {
		f.forget()
		f.created = info.Created
	}
	f.began = info.State.LastSeq
	policy := jetstream.OrderedConsumerConfig{DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy, MaxResetAttempts: 1}
	if f.stalled {
		if err := f.catchUp(ctx, stream); err != nil {
			return err
		}
		f.stalled = false
		policy.DeliverPolicy, policy.OptStartSeq = jetstream.DeliverByStartSequencePolicy, f.last+1
	}
	consumer, err := stream.OrderedConsumer(ctx, policy)
	if err != nil {
		return err
	}
	messages, err := consumer.Messages(jetstream.PullHeartbeat(heartbeat), jetstream.PullExpiry(5*time.Second))
	if err != nil {
		return err
	}
	defer messages.Stop()
	defer context.AfterFunc(ctx, messages.Stop)()
	f.g.counts.connected.Store(true)
	once(f.g.usable)
	listing := info.State.Msgs > 0 && f.last < f.began // of what is in the stream already
	name := nameOf(consumer)
	for silent := 0; ; {
		wait := listTick
		if !listing {
			once(f.g.heard)
			wait = tick
		}
		m, err := next(ctx, messages, wait)
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
			// The client makes another consumer behind the last message after a failure.
			lost := nameOf(consumer) != name
			if silent++; !lost && !listing && silent%quietTicks != 0 {
				continue
			}
			more, err := f.awaits(ctx, stream)
			switch {
			case err != nil:
				return err
			case more && (lost || listing && silent > 1): // it has had the time to come
				f.stalled = true
				return fmt.Errorf("no message comes after %d, but there are some", f.last)
			case lost:
				return errLost
			}
			listing = more
			continue
		}
		if err != nil {
			return err
		}
		meta, err := m.Metadata()
		if err != nil {
			return err
		}
		if meta.Consumer != name {
			return errLost
		}
		silent = 0
		seq := meta.Sequence.Stream
		if seq <= f.last && meta.Timestamp.After(f.newest) {
			f.forget()
			return fmt.Errorf("%w: message %d is another one", errRestored, seq)
		}
		f.meet(seq, meta.Timestamp, m.Subject(), m.Data())
		listing = listing && seq < f.began
	}
}

// A follower that waits for a message looks once in a tick whether its consumer is still
// there, and once in quietTicks whether the stream has messages that do not come. A tick is
// longer than the two heartbeats after which the client gives a silent consumer up.
const (
	heartbeat  = time.Second
	tick       = 5 * heartbeat / 2
	quietTicks = 2
	// While it lists what there is, it looks whether there is more when so much time has passed.
	listTick = time.Second
)

// next waits for a message for some time.
func next(ctx context.Context, messages jetstream.MessagesContext, d time.Duration) (jetstream.Msg, error) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	return messages.Next(jetstream.NextContext(ctx))
}

// nameOf returns the name of the server's consumer, which an ordered one replaces.
func nameOf(c jetstream.Consumer) string {
	if info := c.CachedInfo(); info != nil {
		return info.Name
	}
	return ""
}

var errLost = errors.New("the consumer was lost")

var errRestored = errors.New("it was restored from a backup, or made anew")

// meet reads a message, unless it was met before. It is as old as its time says if it was in
// the stream when the follower began.
func (f *follower[K]) meet(seq uint64, at time.Time, subject string, payload []byte) {
	if seq <= f.last {
		return
	}
	f.last = seq
	if at.After(f.newest) {
		f.newest = at
	}
	var age time.Duration
	if seq <= f.began {
		age = max(0, time.Since(at))
	}
	f.read(subject, payload, age)
}

// catchUp meets the messages behind the last one without a consumer: there is one that none
// delivers, because it looks like a status of the server.
func (f *follower[K]) catchUp(ctx context.Context, stream jetstream.Stream) error {
	for {
		bounded, cancel := context.WithTimeout(ctx, publishTimeout)
		m, err := stream.GetMsg(bounded, f.last+1, jetstream.WithGetMsgSubject(f.g.config.Stream+".>"))
		cancel()
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		f.meet(m.Sequence, m.Time, m.Subject, m.Data)
	}
}

// awaits reports whether the stream has a message that was not met. The last one that it
// had may have expired, and then none comes. It fails if the stream is another one.
func (f *follower[K]) awaits(ctx context.Context, stream jetstream.Stream) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	stored := f.g.acked.Load()
	info, err := stream.Info(ctx)
	if err != nil {
		return false, err
	}
	if f.restored(info, stored) {
		return false, errRestored
	}
	if info.State.LastSeq == f.last {
		return false, nil
	}
	m, err := stream.GetLastMsgForSubject(ctx, f.g.config.Stream+".>")
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return false, nil
	}
	return err == nil && m.Sequence > f.last, err
}

// restored reports whether the stream is another one than that of the last message that was
// met, or ends before that, or before one that this replica has stored by now.
func (f *follower[K]) restored(info *jetstream.StreamInfo, stored uint64) bool {
	return !info.Created.Equal(f.created) || info.State.LastSeq < max(f.last, stored)
}

// forget makes all messages count as not met: the stream is another one, or was restored
// from a backup. Commands of this replica that were stored, and not met, may not come.
func (f *follower[K]) forget() {
	f.last, f.newest = 0, time.Time{}
	f.g.acked.Store(0)
	clear(f.votes)
	f.g.commands.mu.Lock()
	defer f.g.commands.mu.Unlock()
	clear(f.g.commands.given)
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

// read follows a message, which was said so long ago.
func (f *follower[K]) read(subject string, payload []byte, age time.Duration) {
	defer f.g.counts.heard.Add(1) // when its effect, if any, can be seen
	h, err := decode(f.g.config.Stream, subject, payload)
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
