package registry

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/latchfree/latchfree/cluster/internal/push"
)

const (
	// offerHeader is the header of a sync message that says who may be asked for the next
	// one: the name of the registry that has sent it, how often it does so in nanoseconds,
	// and when the stream was created that it has sent it to.
	offerHeader = "Latchfree-Beat"
	// sharePrefix begins the subjects of requests to take part in the next beat.
	sharePrefix = "latchfree.beat."
	// How often a registry looks whether the beat that was named to it is delivered, which
	// comes about when the answer does.
	sharePoll = time.Millisecond
	// maxRequests bounds the requests that wait for a beat: two of each mirror that a bucket may have.
	maxRequests = 2048
	// After so many requests in a row that have proved nothing, a registry beats by itself.
	allowedMisses = 2
)

// sharing is what a registry with Config.MaxLag knows of other such registries of its
// bucket: see "Shared beats" in DESIGN.md. Its zero value shares nothing.
type sharing struct {
	name    string // of this registry; "" if it has no MaxLag
	subject string // of requests, up to the name
	period  time.Duration
	// requests of others wait for the next beat of this registry. Who finds no room asks again.
	requests chan *nats.Msg

	created atomic.Int64          // when the stream was that the mirror follows
	last    atomic.Pointer[offer] // the last one that this registry could use; nil if there is none
}

// offer says who may be asked for a beat.
type offer struct {
	host    string
	every   time.Duration // how often it sends one
	created int64         // when the stream was
	heard   time.Time
}

func (s *sharing) init(bucket, name string, period time.Duration) {
	s.name, s.subject, s.period = name, sharePrefix+bucket+".", period
	s.requests = make(chan *nats.Msg, maxRequests)
}

// attached notes the stream that the mirror follows from now on. Offers of before are void.
func (s *sharing) attached(created time.Time) {
	s.created.Store(created.UnixNano())
	s.last.Store(nil)
}

// offer returns the header of a sync message of this registry.
func (s *sharing) offer() string {
	return fmt.Sprintf("%s %d %d", s.name, s.period.Nanoseconds(), s.created.Load())
}

// offered notes the offer of a sync message, if it has one that this registry can use.
func (s *sharing) offered(text string) {
	o := offer{heard: time.Now()}
	if _, err := fmt.Sscanf(text, "%s %d %d", &o.host, &o.every, &o.created); err != nil || s.name == "" || len(o.host) > 64 || strings.ContainsAny(o.host, ".*>") { // which a subject will have
		return
	}
	// A stream that copies another one holds offers of that one, whose revisions are others.
	if o.every <= s.period && o.created == s.created.Load() {
		s.last.Store(&o)
	}
}

// current returns who offers beats, which may be this registry, or "" if nobody does.
func (s *sharing) current() string {
	if o := s.last.Load(); o != nil && time.Since(o.heard) <= o.every*5/2 {
		return o.host
	}
	return ""
}

// forget takes an offer for void.
func (s *sharing) forget(host string) {
	if o := s.last.Load(); o != nil && o.host == host {
		s.last.CompareAndSwap(o, nil)
	}
}

// take returns the requests that wait. A beat that begins later answers them.
func (s *sharing) take() (list []*nats.Msg) {
	for len(s.requests) > 0 { // nobody else takes them
		list = append(list, <-s.requests)
	}
	return list
}

// stayFresh proves the mirror current as often as Config.MaxLag asks for it.
func (r *Registry[K, V]) stayFresh() {
	if sub, err := r.conn.ChanSubscribe(r.sharing.subject+r.sharing.name, r.sharing.requests); err == nil {
		defer func() { _ = sub.Unsubscribe() }()
	}
	tick := time.NewTicker(r.sharing.period)
	defer tick.Stop()
	for misses := 0; ; {
		select {
		case <-tick.C:
		case <-r.life.Done():
			return
		}
		if host := r.sharing.current(); host != r.sharing.name && len(r.sharing.requests) == 0 {
			if host != "" && r.takePart(host, &misses) {
				continue
			}
			// Those that have lost their host do not all beat: the first offer comes to the others.
			_ = push.Pause(r.life, rand.N(r.sharing.period/2))
			if now := r.sharing.current(); host == "" && now != "" && r.takePart(now, &misses) {
				continue
			}
		}
		r.beater.due.Store(true)
		r.beater.demand()
	}
}

// takePart proves the mirror current by a beat of a host, or tries to. It reports false if this registry has
// to beat by itself.
func (r *Registry[K, V]) takePart(host string, misses *int) bool {
	if !r.mirror.settled.Load() {
		return false
	}
	gone, proved := r.shareBeat(host)
	if *misses++; proved {
		*misses = 0
	}
	if gone {
		r.sharing.forget(host)
	}
	if gone || *misses >= allowedMisses {
		*misses = 0
		return false
	}
	return true
}

// shareBeat asks another registry for its next beat. It reports whether that is known to have
// gone, and whether its answer has proved the mirror exact.
func (r *Registry[K, V]) shareBeat(host string) (gone, proved bool) {
	began, gaps, before := time.Since(r.begun), r.mirror.gaps.Load(), r.mirror.position.Load()
	ctx, cancel := context.WithTimeout(r.life, r.sharing.period*3/2)
	defer cancel()
	m, err := r.conn.RequestWithContext(ctx, r.sharing.subject+host, nil)
	if err != nil {
		return errors.Is(err, nats.ErrNoResponders), false
	}
	revision, err := strconv.ParseUint(string(m.Data), 10, 64)
	if err != nil || revision <= before { // which was delivered before the beat was sent
		return true, false
	}
	for ; ; _ = push.Pause(ctx, sharePoll) {
		// The mirror's goroutine counts a gap before it notes the delivery that shows it.
		at := r.mirror.position.Load()
		switch {
		case !r.mirror.settled.Load() || r.mirror.gaps.Load() != gaps:
			return false, false
		case at >= revision:
			// LP(Fresh): the host's sync message is committed, after the request has come to it.
			r.beater.prove(began)
			r.status.fail(nil)
			return false, true
		case ctx.Err() != nil:
			return false, false
		}
	}
}
