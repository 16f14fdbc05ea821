package registry

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// reserveKey has the room of a bucket with MaxBytes that is kept for deletions: see "A full bucket"
	// in DESIGN.md. No hexadecimal digit follows the "=".
	reserveKey = syncPrefix + "reserve"
	// reserveSize is enough for the marker of a key of maxKey bytes.
	reserveSize = 4 << 10
	// How often a message is sent again into room that others may take.
	spends = 3
)

// full reports whether an answer says that a limit of the bucket has refused a message before it was proposed.
func full(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && api.ErrorCode == codeStoreFailed && strings.Contains(api.Description, "maximum")
}

// spend makes room by giving up the reserve, for a message that makes the bucket no larger.
func (r *Registry[K, V]) spend(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, r.config.Timeout)
	defer cancel()
	s, err := r.js.Stream(ctx, r.stream)
	if err == nil {
		err = s.Purge(ctx, jetstream.WithPurgeSubject(r.prefix+reserveKey))
		r.beater.refill.Store(true) // not before: a call that stores the reserve meanwhile says that it is there
	}
	if err != nil {
		return fmt.Errorf("its reserve cannot be used: %w", err)
	}
	return nil
}

// reserve stores the reserve if the bucket is limited and may have none.
func (r *Registry[K, V]) reserve(ctx context.Context) {
	if !r.beater.refill.Swap(false) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, r.config.Timeout)
	defer cancel()
	a, _, _ := r.request(ctx, nil, &nats.Msg{
		Subject: r.publish + reserveKey, Data: make([]byte, reserveSize),
		Header: nats.Header{jetstream.ExpectedLastSubjSeqHeader: {"0"}},
	})
	switch a {
	case stored, clash, refused: // it is there, or must not be
	default:
		r.beater.refill.Store(true)
	}
}

// shrinks reports whether data takes no more room than what the key had at a revision.
func (w *write[K, V]) shrinks(expect uint64, data []byte) bool {
	if w.header.Get("KV-Operation") != "" {
		return true
	}
	s := w.r.known(w.key)
	if !s.present || s.revision != expect {
		return false
	}
	old, err := w.r.config.Codec.Encode(s.value)
	return err == nil && len(data) <= len(old)
}
