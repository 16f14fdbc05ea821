package breaker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"
)

// follower hears what other replicas say. It belongs to one goroutine.
type follower[K ~string] struct {
	js jetstream.JetStream
	g  *Group[K]

	created  time.Time                  // the stream that last is a sequence of
	last     uint64                     // the last message that was met
	newest   time.Time                  // the latest time of a message that was met
	began    uint64                     // the last message of the stream when it began to follow
	standing standing                   // which commands were met last
	stalled  bool                       // a message behind the last one is not delivered
	votes    map[K]map[string]time.Time // who says that a key is open, and until when
	namesake string                     // the life of the last other replica with this one's name
	sweepAt  int                        // how many keys with votes make it look for those that have ended
}

const firstSweep = 1024

func newFollower[K ~string](js jetstream.JetStream, g *Group[K]) *follower[K] {
	return &follower[K]{js: js, g: g, votes: make(map[K]map[string]time.Time), standing: newStanding(), sweepAt: firstSweep}
}

// run follows the stream until ctx ends, beginning again after each failure.
func (f *follower[K]) run(ctx context.Context) {
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		met := f.g.counts.heard.Load()
		err := f.follow(ctx)
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
	end, restored, err := f.end(ctx, info, stored)
	if err != nil {
		return err
	}
	if restored {
		f.forget()
		f.created = info.Created
	}
	f.began, f.standing.older = end, nil
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
	defer f.g.counts.connected.Store(false) // also if a function of the caller exits
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
		if seq <= f.last {
			if err := f.listed(ctx, m.Subject(), seq); err != nil {
				return err
			}
		} else if restored, err := f.restored(ctx, stream); restored {
			f.forget()
			return errRestored
		} else if err != nil {
			return err
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
	if f.isCommand(subject) {
		f.standing.note(subject, seq)
	}
	var age time.Duration
	old := seq <= f.began
	if old {
		age = max(0, time.Since(at))
	}
	f.read(subject, payload, age, old)
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
	end, restored, err := f.end(ctx, info, stored)
	switch {
	case err != nil:
		return false, err
	case restored:
		f.forget()
		return false, errRestored
	case end > info.State.LastSeq || end == f.last: // of a leader that is cut off, or all is met
		return false, nil
	}
	m, err := stream.GetLastMsgForSubject(ctx, f.g.config.Stream+".>")
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return false, nil
	}
	return err == nil && m.Sequence > f.last, err
}

// end returns where the stream ends at least, and whether it is another one than that of the
// last message that was met, or ends before that, or before one that this replica has stored
// by now. A leader that is cut off says so, too, for some seconds. So a message decides,
// which only a majority can store.
func (f *follower[K]) end(ctx context.Context, info *jetstream.StreamInfo, stored uint64) (end uint64, restored bool, err error) {
	end = info.State.LastSeq
	if !info.Created.Equal(f.created) {
		return end, true, nil
	}
	known := max(f.last, stored)
	if end >= known {
		return end, false, nil
	}
	end, err = f.g.publishOne(ctx, f.js, hint{Kind: proof, Replica: f.g.config.Replica, Life: f.g.life, ID: nuid.Next()})
	return end, err == nil && end <= known, err
}

// forget makes all messages count as not met: the stream is another one, or was restored
// from a backup. Commands of this replica that were stored, and not met, may not come; those
// that wait will.
func (f *follower[K]) forget() {
	f.last, f.newest, f.standing = 0, time.Time{}, newStanding()
	f.g.acked.Store(0)
	clear(f.votes)
	f.g.commands.mu.Lock()
	defer f.g.commands.mu.Unlock()
	maps.DeleteFunc(f.g.commands.given, func(subject, id string) bool { return !f.g.outbox.waits(subject, id) })
}

// once closes a channel that only the follower closes, unless it has.
func once(c chan struct{}) {
	select {
	case <-c:
	default:
		close(c)
	}
}
