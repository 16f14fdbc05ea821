package breaker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"github.com/latchfree/latchfree/cluster/internal/push"
)

// follower hears what other replicas say. It belongs to one goroutine.
type follower[K ~string] struct {
	js jetstream.JetStream
	g  *Group[K]

	created time.Time                  // the stream that last is a sequence of
	last    uint64                     // the last message that was met
	newest  time.Time                  // the latest time of a message that was met
	began   uint64                     // the last message of the stream when it began to follow
	votes   map[K]map[string]time.Time // who says that a key is open, and until when
	sweepAt int                        // how many keys with votes make it look for those that have ended
}

const firstSweep = 1024

func newFollower[K ~string](js jetstream.JetStream, g *Group[K]) *follower[K] {
	return &follower[K]{js: js, g: g, votes: make(map[K]map[string]time.Time), sweepAt: firstSweep}
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
		if push.Pause(ctx, pause) != nil {
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
	f.began = end
	messages, err := push.Open(ctx, f.js, f.g.config.Stream, f.g.config.Stream+".>", heartbeat, publishTimeout)
	if err != nil {
		return err
	}
	defer messages.Close()
	f.g.counts.connected.Store(true)
	defer f.g.counts.connected.Store(false) // also if a function of the caller exits
	f.g.found()
	for listing := info.State.Msgs > 0 && f.last < f.began; ; { // of what is in the stream already
		if !listing {
			f.g.all()
		}
		m, ok, err := messages.Next(ctx)
		switch {
		case err != nil:
			return err
		case ok && m.Sequence <= f.last && m.Stored.After(f.newest):
			f.forget()
			return fmt.Errorf("the stream was restored from a backup: message %d is another one", m.Sequence)
		case ok:
			f.meet(m.Sequence, m.Stored, m.Subject, m.Data)
			listing = listing && m.Sequence < f.began
		case listing:
			if listing, err = f.awaits(ctx, stream); err != nil {
				return err
			}
		}
	}
}

// heartbeat is how often the server says that there is nothing to tell.
const heartbeat = time.Second

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
	end, err = f.g.publishOne(ctx, f.js, hint{Kind: proof, Replica: f.g.replica, ID: nuid.Next()})
	return end, err == nil && end <= known, err
}

// forget makes all messages count as not met: the stream is another one, or was restored
// from a backup. Commands of this replica that were stored, and not met, may not come; those
// that wait will.
func (f *follower[K]) forget() {
	f.last, f.newest = 0, time.Time{}
	f.g.acked.Store(0)
	clear(f.votes)
	f.g.commands.mu.Lock()
	defer f.g.commands.mu.Unlock()
	f.g.outbox.mu.Lock() // as a command does
	defer f.g.outbox.mu.Unlock()
	maps.DeleteFunc(f.g.commands.given, func(subject, id string) bool { return !f.g.outbox.waits(subject, id) })
}
