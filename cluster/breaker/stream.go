package breaker

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

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
	case c.Retention != jetstream.LimitsPolicy:
		return fmt.Errorf("retention is %v, must be %v", c.Retention, jetstream.LimitsPolicy)
	case c.MaxAge > 0:
		return fmt.Errorf("MaxAge is %v: it would forget forced states", c.MaxAge)
	case c.Discard == jetstream.DiscardOld && (c.MaxMsgs > 0 || c.MaxBytes > 0):
		return fmt.Errorf("MaxMsgs is %d and MaxBytes %d with %v: it would forget forced states", c.MaxMsgs, c.MaxBytes, c.Discard)
	}
	return nil
}
