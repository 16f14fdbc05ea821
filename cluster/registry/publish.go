package registry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/latchfree/latchfree/cluster/internal/push"
)

const (
	// The pauses between two sendings of a message.
	firstRetry = 2 * time.Millisecond
	lastRetry  = 250 * time.Millisecond

	// Codes of errors of the server that nats.go does not name.
	codeWrongLast      jetstream.ErrorCode = 10071
	codeWrongLastAny   jetstream.ErrorCode = 10164 // another write of the subject is in flight
	codeDuplicate      jetstream.ErrorCode = 10158 // the same message is in flight
	codeTooLarge       jetstream.ErrorCode = 10054
	codeStoreFailed    jetstream.ErrorCode = 10077
	codeHeaderTooLarge jetstream.ErrorCode = 10097
)

// answer is what came of one request.
type answer int

const (
	refused answer = iota // the error is final
	stored                // at the revision returned
	clash                 // the error is a *conflict
	busy                  // as clash, but the error names no revision
	repeat                // nothing was stored, and another request may succeed
	unclear               // the request may have been stored, or may be later
	noRoom                // refused, because the bucket is full
)

// request sends m once, and waits for its answer no longer than Config.Timeout and until the mirror has it for w, if there
// is one. It returns what came of it, and the revision if it is stored.
func (r *Registry[K, V]) request(ctx context.Context, w *call, m *nats.Msg) (answer, uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, r.config.Timeout)
	defer cancel()
	if w != nil {
		r.calls.request(w, cancel)
	}
	ack, err := r.js.PublishMsg(ctx, m)
	if err == nil && ack.Stream != r.stream {
		return refused, 0, fmt.Errorf("registry: stream %s has stored the message, not %s", ack.Stream, r.stream)
	}
	if err == nil {
		return stored, ack.Sequence, nil
	}
	var api *jetstream.APIError
	switch {
	case errors.As(err, &api):
		a, err := refusal(api)
		return a, 0, err
	case errors.Is(err, nats.ErrMaxPayload):
		return refused, 0, fmt.Errorf("%w: %w", ErrTooLarge, err)
	case errors.Is(err, jetstream.ErrNoStreamResponse), errors.Is(err, nats.ErrNoResponders):
		return repeat, 0, err
	case errors.Is(err, nats.ErrInvalidConnection), errors.Is(err, nats.ErrBadSubject), errors.Is(err, nats.ErrHeadersNotSupported):
		return refused, 0, err
	}
	return unclear, 0, err
}

// refusal returns what an error of the server says about the request, and the registry's error for it.
func refusal(api *jetstream.APIError) (answer, error) {
	switch api.ErrorCode {
	case codeWrongLast, codeWrongLastAny:
		if last, named := lastRevision(api); named {
			return clash, &conflict{last}
		}
		return busy, errors.New("registry: another write of the key is in flight")
	case codeDuplicate:
		return unclear, fmt.Errorf("registry: %w", api)
	case codeTooLarge, codeHeaderTooLarge:
		return refused, fmt.Errorf("%w: %w", ErrTooLarge, api)
	case codeStoreFailed:
		if full(api) { // a limit was checked before the message was proposed
			return noRoom, fmt.Errorf("%w: %w", ErrFull, api)
		}
		return unclear, fmt.Errorf("registry: %w", api)
	}
	if api.Code >= 500 {
		return busy, fmt.Errorf("registry: %w", api)
	}
	return refused, fmt.Errorf("registry: %w", api)
}

// lastRevision returns the revision that an error names: "wrong last sequence: 7".
func lastRevision(api *jetstream.APIError) (revision uint64, ok bool) {
	revision, err := strconv.ParseUint(api.Description[strings.LastIndexByte(api.Description, ' ')+1:], 10, 64)
	return revision, err == nil
}

// store stores a message for the key if the bucket's last revision of that is expect, and returns its revision
// when the mirror has that. It sends the message until there is an answer. If the
// condition does not hold, the error is a *conflict, and the message is not stored and never will be;
// but with w.id, it may be if the conflict names revision 0, and the call must go on with that.
//
// A leader that was deposed without noticing may get a message besides the leader, and answer first: see
// "A second answer" in DESIGN.md.
func (w *write[K, V]) store(expect uint64, data []byte) (uint64, error) {
	r, ctx, id := w.r, w.ctx, w.id
	if id == "" {
		id = r.nextID()
	}
	c := r.calls.add(w.key, id, 0)
	defer r.calls.remove(w.key, c)
	c.had = r.known(w.key).revision
	m := &nats.Msg{Subject: r.publish + w.name, Data: data, Header: nats.Header{
		nats.MsgIdHdr:                       {id},
		jetstream.ExpectedLastSubjSeqHeader: {strconv.FormatUint(expect, 10)},
	}}
	for h, v := range w.header {
		m.Header[h] = v
	}
	gaps, behind, spent, pause := r.mirror.gaps.Load(), 0, 0, firstRetry
	doubtful := false // a sending has had no answer
	for began := time.Now(); ; {
		if err := r.connected(ctx); err != nil {
			return 0, r.ended(ctx, doubtful || w.suspicious, err)
		}
		if (doubtful || w.suspicious) && expect == 0 && time.Since(began) > r.creates() {
			return 0, fmt.Errorf("%w: a request was lost, and the bucket may have forgotten it", ErrUnknown)
		}
		attached := r.mirror.attached.Load()
		a, revision, err := r.request(ctx, c, m)
		if got := r.calls.seen(c); got != 0 {
			return got, nil // the mirror has it, whatever the answer is
		}
		switch a {
		case stored:
			return revision, r.mirrored(ctx, w.key, c, m, revision, attached)
		case noRoom, refused:
			if a == noRoom && spent < spends && w.shrinks(expect, data) {
				if spent++; spent == 1 {
					defer r.reserve(ctx) // before a later call of the caller takes its room
				}
				cannot := r.spend(ctx)
				if cannot == nil {
					continue
				}
				err = fmt.Errorf("%w; %w", err, cannot)
			}
			if (doubtful || w.suspicious) && !errors.Is(err, ErrTooLarge) { // for which all sendings are
				err = fmt.Errorf("%w: %w", ErrUnknown, err)
			}
			return 0, err
		case clash:
			switch now := err.(*conflict); {
			case now.last > expect && doubtful:
				return r.decide(ctx, w.key, c, now, gaps)
			case now.last > expect:
				w.suspicious = false
				return 0, now
			case now.last == 0 && expect != 0 && w.id != "" && !doubtful:
				w.suspicious = true
				return 0, now
			}
			if behind++; r.wentBack(ctx, w.key, expect, behind) {
				if doubtful {
					err = fmt.Errorf("%w: a request was lost, and the bucket has lost revision %d of the key", ErrUnknown, expect)
				}
				w.suspicious = false
				return 0, err
			}
			w.suspicious = true
		case busy:
			w.suspicious = true
		case unclear:
			doubtful = true
		case repeat:
		}
		if ctx.Err() != nil || r.life.Err() != nil {
			return 0, r.ended(ctx, doubtful || w.suspicious, err)
		}
		_ = push.Pause(ctx, pause/2+rand.N(pause))
		pause = min(2*pause, lastRetry)
	}
}

// creates returns for how long a message may be sent again that expects the bucket to have nothing of its key. Any
// other revision never comes again, but that may, when a deletion or an expiry has been
// forgotten: then only the message id keeps a second one out. The last sending takes some time, too.
func (r *Registry[K, V]) creates() time.Duration {
	known := time.Duration(r.status.known.Load())
	return known - min(r.config.Timeout, known/2)
}

// wentBack reports whether the mirror, proved exact, shows that the bucket has lost a revision of k, as one
// that was restored or made anew. Behind is how often a server has named a lower one by now: that may
// be a deposed leader, whose answers prove nothing. The mirror may not have noticed either, and lists again the second
// time, the fourth, and so on.
func (r *Registry[K, V]) wentBack(ctx context.Context, k K, revision uint64, behind int) bool {
	ctx, cancel := context.WithTimeout(ctx, r.config.Timeout)
	defer cancel()
	if behind > 1 && behind&(behind-1) == 0 {
		r.listAgain()
	}
	return r.Sync(ctx) == nil && r.known(k).expect < revision
}

// mirrored waits until the mirror has the message m of k, which was sent when the mirror had attached so
// often, and was acknowledged to w with a revision.
func (r *Registry[K, V]) mirrored(ctx context.Context, k K, w *call, m *nats.Msg, revision, attached uint64) error {
	r.calls.waitFor(w, revision)
	if s := r.known(k); revision <= w.had && s.revision >= w.had {
		r.listAgain() // the bucket was restored or made anew, and the mirror has not noticed
	} else if s.revision >= revision {
		return nil
	} else if s.revision == 0 && r.mirror.shown.Load() >= revision {
		// The key was deleted, and that is forgotten. Or the mirror has passed the revision without the
		// message, which was overwritten, and does not have what comes after it.
		switch err := r.Sync(ctx); {
		case err == nil:
			return nil
		case r.life.Err() != nil:
			return fmt.Errorf("%w: %w", ErrBehind, context.Cause(r.life))
		}
		return fmt.Errorf("%w: %w", ErrBehind, context.Cause(ctx))
	}
	select {
	case r.mirror.stored <- r.storedWrite(m, revision, attached):
	case <-w.done:
	case <-ctx.Done():
	}
	select {
	case <-w.done:
		if r.life.Err() == nil || r.caught(k, revision) {
			return nil
		}
		return fmt.Errorf("%w: %w", ErrBehind, context.Cause(r.life))
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", ErrBehind, context.Cause(ctx))
	}
}

// decide finds out what became of a message of which an earlier sending may have been
// stored, and a later one was refused: see "A lost acknowledgement" in DESIGN.md.
func (r *Registry[K, V]) decide(ctx context.Context, k K, w *call, c *conflict, gaps uint64) (uint64, error) {
	r.calls.waitFor(w, c.last)
	if !r.caught(k, c.last) {
		select {
		case <-w.done:
		case <-ctx.Done():
		}
	}
	if got := r.calls.seen(w); got != 0 {
		return got, nil
	}
	if !r.caught(k, c.last) {
		return 0, r.ended(ctx, true, nil)
	}
	if r.mirror.gaps.Load() == gaps && r.mirror.delivered.Load() >= c.last {
		return 0, c // all that was stored since has been seen here, and the message was not
	}
	return 0, fmt.Errorf("%w: a request was lost, and the key has changed", ErrUnknown)
}

// connected waits until the connection is up.
func (r *Registry[K, V]) connected(ctx context.Context) error {
	if r.conn.IsConnected() {
		return cmp.Or(context.Cause(r.life), context.Cause(ctx))
	}
	ctx, cancel := r.while(ctx)
	defer cancel()
	return push.Connected(ctx, r.conn)
}

// ended returns the error of a write that ends without an answer. Doubtful says that it
// may have been sent.
func (r *Registry[K, V]) ended(ctx context.Context, doubtful bool, err error) error {
	what := ErrUnavailable
	if doubtful {
		what = ErrUnknown
	}
	switch {
	case r.life.Err() != nil:
		err = context.Cause(r.life)
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	}
	return fmt.Errorf("%w: %w", what, err)
}

// nextID returns the id of another message.
func (r *Registry[K, V]) nextID() string {
	return r.id + "." + strconv.FormatUint(r.names.Add(1), 36)
}
