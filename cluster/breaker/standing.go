package breaker

import (
	"context"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"
)

// standing knows which commands of the stream were met last. A stream keeps the last message
// of a subject only. So one that is listed, and is older than one that was met, was restored
// from a backup, or comes from a server that is behind. That one delivers the later message
// before all that follow it.
type standing struct {
	met     map[string]met    // by subject
	older   map[string]uint64 // what the present consumer has listed, older than what was met
	sweepAt int               // how many subjects make it forget those that are long ago
}

// met says that a message was met.
type met struct {
	seq uint64
	at  time.Time
}

func newStanding() standing { return standing{met: make(map[string]met), sweepAt: firstSweep} }

// note says that a message was met.
func (s *standing) note(subject string, seq uint64) {
	now := time.Now()
	if len(s.met) >= s.sweepAt {
		for subject, m := range s.met {
			if now.Sub(m.at) > 2*commandKept {
				delete(s.met, subject)
			}
		}
		s.sweepAt = max(firstSweep, 2*len(s.met))
	}
	s.met[subject] = met{seq, now}
}

// list says that a message was listed that was met before, or another of its sequence. It
// reports whether that is the first one that is older than one that was met.
func (s *standing) list(subject string, seq uint64) (first bool) {
	if seq >= s.met[subject].seq {
		delete(s.older, subject)
		return false
	}
	first = len(s.older) == 0
	if first {
		s.older = make(map[string]uint64)
	}
	s.older[subject] = seq
	return first
}

// isCommand reports whether a subject is one of commands.
func (f *follower[K]) isCommand(subject string) bool {
	c := hint{Kind: resetAll}.subject(f.g.config.Stream)
	return subject == c || strings.HasPrefix(subject, c+".")
}

// listed notes a message that is not behind the last one that was met. If it is older than
// one that was met, a message of this replica follows it, so that this is looked into soon.
func (f *follower[K]) listed(ctx context.Context, subject string, seq uint64) error {
	if !f.isCommand(subject) || !f.standing.list(subject, seq) {
		return nil
	}
	_, err := f.g.publishOne(ctx, f.js, hint{Kind: proof, Replica: f.g.config.Replica, Life: f.g.life, ID: nuid.Next()})
	return err
}

// restored reports whether the stream was restored from a backup, when a message has come
// that is behind all that were met: whether older ones are still the last of their subjects.
func (f *follower[K]) restored(ctx context.Context, stream jetstream.Stream) (bool, error) {
	if len(f.standing.older) == 0 {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	for subject, seq := range f.standing.older {
		m, err := stream.GetLastMsgForSubject(ctx, subject)
		if err != nil {
			return false, err
		}
		if m.Sequence == seq {
			return true, nil
		}
		delete(f.standing.older, subject)
	}
	return false, nil
}
