package breaker

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/latchfree/latchfree/atomicbreaker"
)

// kind is what a hint says.
type kind string

const (
	// Reports, of what results have caused at a replica.
	tripped   kind = "tripped"   // was closed, and is open
	stillOpen kind = "stillOpen" // a probe failed
	recovered kind = "recovered"

	// Commands, of an operator.
	trip      kind = "trip"
	forceOpen kind = "forceOpen"
	disable   kind = "disable"
	halfOpen  kind = "halfOpen"
	reset     kind = "reset"
	resetAll  kind = "resetAll"

	// unforce is what a Trip says whose time has passed: halfOpen, if the key is in a forced
	// state. No message has this kind.
	unforce kind = "unforce"

	// proof says nothing: its sequence proves where the stream ends.
	proof kind = "proof"
)

// isReport reports whether k is not a command.
func (k kind) isReport() bool { return k == tripped || k == stillOpen || k == recovered }

// How long the stream keeps hints that say no time: short for reports, since a key is
// healthy if nobody says anything of it, and longer for commands, which a replica that was
// cut off is to hear.
const (
	reportKept  = time.Minute
	commandKept = time.Hour
)

// usualTrip is how long a Trip for the usual time opens replicas that hear of it: they may
// have set that time differently.
const usualTrip = time.Minute

// over is the time of a Trip that is published when its time has passed.
const over time.Duration = 1

// longestTTL is the longest time that the server is asked to keep a message for. Beyond
// some hundred years since 1970 it counts wrong.
const longestTTL = 100 * 365 * 24 * time.Hour

// hint is a message of the stream.
type hint struct {
	Kind    kind          `json:"kind"`
	Key     string        `json:"key,omitempty"`
	Replica string        `json:"replica"`
	For     time.Duration `json:"for,omitempty"` // nanoseconds; of tripped, stillOpen and trip
	ID      string        `json:"id,omitempty"`

	until time.Time // when it is no longer worth publishing, or, of a Trip, is over; zero: never
}

// newReport returns the hint for an event, or false if results have not caused it.
func newReport(key, replica string, e atomicbreaker.Event) (hint, bool) {
	h := hint{Key: key, Replica: replica}
	switch e.Reason {
	case atomicbreaker.ReasonThreshold, atomicbreaker.ReasonFailureRate, atomicbreaker.ReasonFailureCount,
		atomicbreaker.ReasonSlowRate, atomicbreaker.ReasonTripFunc:
		h.Kind, h.For = tripped, e.OpenFor
	case atomicbreaker.ReasonProbeFailed, atomicbreaker.ReasonRecordFailure:
		h.Kind, h.For = stillOpen, e.OpenFor
	case atomicbreaker.ReasonRecovered, atomicbreaker.ReasonRecordSuccess:
		h.Kind = recovered
	default:
		return hint{}, false
	}
	return h.dated(), true
}

// dated returns h with the time until which it is worth publishing, or, of a Trip, until
// which it opens. What ends a state is worth that for as long as others may have the state:
// forced ones, and keys open until Reset, have no end.
func (h hint) dated() hint {
	var good time.Duration
	switch {
	case (h.Kind.isReport() || h.Kind == trip) && h.For > 0:
		good = h.For
	case h.Kind == tripped || h.Kind == stillOpen:
		good = h.kept()
	case h.Kind == recovered:
		good = commandKept // so long the stream keeps what it ends
	case h.Kind == trip && h.For == 0:
		good = usualTrip
	}
	if good > 0 {
		h.until = time.Now().Add(good)
	}
	return h
}

// due returns h as it is published now, and whether that is still worth it.
func (h hint) due() (hint, bool) {
	if h.until.IsZero() {
		return h, true
	}
	switch rest := time.Until(h.until); {
	case rest > 0:
		h.For = min(h.For, rest)
	case h.Kind == trip:
		h.For = over // it may have ended a forced state, and others hold that still
	default:
		return h, false
	}
	return h, true
}

// kept returns how long the stream keeps h; 0 means until the next of its subject.
func (h hint) kept() time.Duration {
	switch h.Kind {
	case trip:
		if h.For < 0 || h.For > longestTTL { // until Reset, or as good as that
			return 0
		}
		return max(h.For, commandKept) // it has replaced what it ends
	case tripped, stillOpen:
		return min(max(h.For, time.Second), commandKept)
	case recovered, proof:
		return reportKept
	case halfOpen, reset: // the same
		return commandKept
	}
	return 0
}

// subject returns the subject of h in a stream.
func (h hint) subject(stream string) string {
	switch {
	case h.Kind == resetAll:
		return stream + ".c"
	case h.Kind == proof:
		return stream + ".p." + h.Replica
	case h.Kind.isReport():
		return stream + ".s." + token(h.Key) + "." + h.Replica
	}
	return stream + ".c." + token(h.Key)
}

// token returns key in the alphabet of subjects. No two keys have the same.
func token(key string) string { return "k" + base64.RawURLEncoding.EncodeToString([]byte(key)) }

// encode returns the payload of h.
func (h hint) encode() []byte {
	b, err := json.Marshal(wire{hint: h, Key: []byte(h.Key)})
	if err != nil {
		panic(err) // a hint holds nothing that can fail
	}
	return b
}

// wire is a hint whose key may be any bytes, which JSON strings are not.
type wire struct {
	hint
	Key []byte `json:"key"`
}

// decode returns the hint of a message, or an error if it is none of this package.
func decode(stream, subject string, payload []byte) (hint, error) {
	var w wire
	if err := json.Unmarshal(payload, &w); err != nil {
		return hint{}, fmt.Errorf("breaker: foreign message on %s: %w", subject, err)
	}
	h := w.hint
	h.Key = string(w.Key)
	switch h.Kind {
	case tripped, stillOpen, recovered, trip, forceOpen, disable, halfOpen, reset, resetAll, proof:
	default:
		return hint{}, fmt.Errorf("breaker: foreign message on %s: kind %q", subject, h.Kind)
	}
	if h.subject(stream) != subject {
		return hint{}, fmt.Errorf("breaker: foreign message on %s: %w", subject, errors.New("its contents belong to another subject"))
	}
	return h, nil
}
