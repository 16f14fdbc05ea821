package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/latchfree/latchfree/examples/planservice/api"
)

// outages is what the kills of replicas did.
type outages struct {
	back    <-chan struct{} // closed when no replica is away; the fields below may be read then
	kills   int
	longest time.Duration // that a killed replica took to listen again
	failed  error

	mu   sync.Mutex
	gaps map[string]time.Duration // the longest that a replica that lived acknowledged no write, by the kind of write
}

func newOutages() *outages {
	back := make(chan struct{})
	close(back)
	return &outages{back: back, gaps: map[string]time.Duration{}}
}

// probe writes to one replica all the time, as a client that talks to no other, and measures
// how long it has no answer. It leaves out times in which the replica itself is away.
func (o *outages) probe(ctx context.Context, l *storming, replica int) error {
	name := fmt.Sprintf("probe-%s-%d", l.phase, replica)
	var was api.Stored[api.Action]
	last := map[string]time.Time{}
	write := func(kind string, f func() error) error {
		err := f()
		now := time.Now()
		var answer *api.Error
		switch {
		case err == nil:
			o.acknowledged(kind, last[kind], now)
			last[kind] = now
		case !errors.As(err, &answer): // it was killed
			clear(last)
		}
		return err
	}
	for i := 0; l.during.Err() == nil; i++ {
		err := write("bucket", func() error {
			return l.timed(func() error {
				now, err := l.at(replica).PutAction(ctx, name, was.Version, was.Value)
				if err == nil {
					was = now
				}
				return err
			})
		})
		if api.IsCode(err, api.CodeNotFound) {
			was, err = l.at(replica).CreateAction(ctx, api.Action{Name: name})
		}
		if l.isLost(err) || api.IsCode(err, api.CodeConflict) || api.IsCode(err, api.CodeExists) { // it was stored, or it is stored later, or never
			if was, err = l.at(replica).Action(ctx, name); api.IsCode(err, api.CodeNotFound) {
				err = nil
			}
		}
		if err == nil {
			err = write("trail", func() error { return recordOne(ctx, l, replica, fmt.Sprintf("%s-%d", name, i)) })
		}
		if err != nil && !l.isLost(err) {
			return err
		}
		time.Sleep(2 * time.Millisecond)
	}
	return nil
}

func (o *outages) acknowledged(kind string, last, now time.Time) {
	if last.IsZero() {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.gaps[kind] = max(o.gaps[kind], now.Sub(last))
}

// killSoon kills a replica after a while, when the one that was killed before is back.
func (o *outages) killSoon(ctx context.Context, s *service, replica int, after time.Duration) {
	<-o.back
	back := make(chan struct{})
	o.back = back
	time.AfterFunc(after, func() {
		defer close(back)
		began := time.Now()
		if err := s.killReplica(ctx, replica); err != nil {
			o.failed = errors.Join(o.failed, err)
			return
		}
		o.kills++
		o.longest = max(o.longest, time.Since(began))
	})
}

// end waits until no replica is away.
func (o *outages) end() error {
	<-o.back
	return o.failed
}
