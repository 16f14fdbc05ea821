package breaker

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/atomicbreaker"
)

// schedule is a stream and its replicas, whose steps happen in an order that the test chooses.
type schedule struct {
	t        *testing.T
	js       jetstream.JetStream
	rng      *rand.Rand
	last     uint64
	messages []stored // the last of each subject, in their order
	ids      map[string]bool
	replicas []*follower[string]
	steps    []string
}

type stored struct {
	seq     uint64
	at      time.Time
	subject string
	payload []byte
}

func (s *schedule) join(name string) *follower[string] {
	c := Config[string]{Stream: "hints"}
	c.Group.Default.Policy = atomicbreaker.Consecutive(2)
	g, err := NewGroup(s.js, c)
	require.NoError(s.t, err)
	f := newFollower(nil, g)
	f.began = s.last
	s.replicas = append(s.replicas, f)
	return f
}

// publish lets a replica publish its first hint, of which the engine may not hear, or the
// replica may not hear that it has.
func (s *schedule) publish(f *follower[string], heard, acked bool) {
	o := f.g.outbox
	if o.count() == 0 {
		return
	}
	was, _ := o.first(s.t.Context())
	h, ok := was.due()
	if !ok {
		o.remove(h.subject("hints"), h.ID)
		f.g.dropped(h)
		return
	}
	subject := h.subject("hints")
	if heard && !s.ids[h.ID] {
		s.ids[h.ID] = true
		s.last++
		s.messages = slices.DeleteFunc(s.messages, func(m stored) bool { return m.subject == subject })
		s.messages = append(s.messages, stored{s.last, time.Now(), subject, h.encode()})
	}
	if heard && acked {
		o.remove(subject, h.ID)
	}
}

// deliver lets a replica meet the next message, and reports whether there is one.
func (s *schedule) deliver(f *follower[string]) bool {
	for _, m := range s.messages {
		if m.seq > f.last {
			f.meet(m.seq, m.at, m.subject, m.payload)
			return true
		}
	}
	return false
}

// step does one thing.
func (s *schedule) step() {
	f := s.replicas[s.rng.IntN(len(s.replicas))]
	k := fmt.Sprint("k", s.rng.IntN(2))
	step := s.rng.IntN(28)
	switch step {
	case 0, 1:
		f.g.ForceOpen(k)
	case 2:
		f.g.Disable(k)
	case 3:
		f.g.Reset(k)
	case 4:
		f.g.ResetAll()
	case 5:
		f.g.HalfOpen(k)
	case 6:
		f.g.Trip(k, time.Hour)
	case 7:
		f.g.Trip(k, time.Nanosecond) // which passes in the outbox
	case 8:
		f.g.RecordFailure(k)
		f.g.RecordFailure(k)
	case 9:
		f.g.RecordSuccess(k)
	case 10:
		f.began = s.last // the follower begins again
	case 11:
		s.publish(f, false, false)
	case 12:
		s.publish(f, true, false)
	case 13, 14, 15, 16, 17, 18:
		s.publish(f, true, true)
	default:
		for range s.rng.IntN(8) {
			s.deliver(f)
		}
	}
	s.steps = append(s.steps, fmt.Sprint(f.g.replica, " ", step, " ", k))
}

// end lets everything arrive.
func (s *schedule) end() {
	for _, f := range s.replicas {
		for {
			if f.g.outbox.count() == 0 {
				break
			}
			s.publish(f, true, true)
		}
	}
	for _, f := range s.replicas {
		for s.deliver(f) {
		}
	}
}

// Whatever the replicas command, publish, lose and hear in which order, they end with the same
// forced states, those that come later too, and wait for no own command.
func TestSchedulesConverge(t *testing.T) {
	js := unreachable(t)
	forced := func(f *follower[string], k string) atomicbreaker.State {
		if s := f.g.State(k); s == atomicbreaker.ForcedOpen || s == atomicbreaker.Disabled {
			return s
		}
		return atomicbreaker.Closed
	}
	for seed := range uint64(600) {
		s := &schedule{t: t, js: js, rng: rand.New(rand.NewPCG(seed, 1)), ids: make(map[string]bool)}
		for i := range 3 {
			s.join(fmt.Sprint("r", min(i, 1+int(seed%2)))) // two may have one name
		}
		for range 60 {
			s.step()
		}
		s.end()
		s.join("late")
		s.end()
		for _, f := range s.replicas {
			for _, k := range []string{"k0", "k1"} {
				require.Equal(t, forced(s.replicas[0], k), forced(f, k), "seed %d, %s at %s: %v", seed, k, f.g.replica, s.steps)
			}
			require.Empty(t, f.g.commands.given, "seed %d: %v", seed, s.steps)
			require.Zero(t, f.g.commands.users)
			require.Empty(t, f.g.commands.entered)
			f.g.Close()
		}
	}
}
