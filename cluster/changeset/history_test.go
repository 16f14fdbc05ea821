package changeset_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/cluster/changeset"
	"github.com/latchfree/latchfree/cluster/internal/natstest"
)

// trail is the model of a trail: a log with an owner.
type trail struct {
	owner  int    // the number of the last claim
	values string // that were appended
}

type opKind int

const (
	opTake   opKind = iota // Claim and Load
	opAppend               // by the owner
	opRead                 // by a Reader
)

type opInput struct {
	kind   opKind
	claim  int    // a number of its own, or that of the owner who appends
	value  string // each once
	wished bool   // of an append: a wish may have fenced the owner
}

type opOutput struct {
	unknown bool   // it may have taken effect, may still do so, or may not
	fenced  bool   // it has not
	values  string // that were loaded
}

var model = porcupine.Model{
	Init: func() any { return trail{} },
	Step: func(state, input, output any) (bool, any) {
		s, in, out := state.(trail), input.(opInput), output.(opOutput)
		switch {
		case in.kind == opRead:
			return s.values == out.values, s
		case in.kind == opTake:
			return out.unknown || s.values == out.values, trail{in.claim, s.values}
		case s.owner != in.claim:
			return out.unknown || out.fenced, s
		case out.fenced && in.wished:
			return true, trail{0, s.values} // nobody can append until the next claim
		}
		return !out.fenced, trail{s.owner, s.values + in.value}
	},
	Equal:             func(a, b any) bool { return a == b },
	DescribeOperation: func(in, out any) string { return fmt.Sprintf("%+v: %+v", in, out) },
}

// history is what clients did, who take a trail from each other.
type history struct {
	t       *testing.T
	name    string
	reads   bool // whether Readers see what is committed
	begun   time.Time
	stopped atomic.Bool
	claims  atomic.Int64
	values  atomic.Int64
	clients sync.WaitGroup

	mu     sync.Mutex
	ops    []porcupine.Operation
	open   []porcupine.Operation // whose outcome is not known
	wishes []wish
}

// wish is a message of a claim that the trail has no room for. It fences the owner, at any
// time between its own.
type wish struct {
	client       int
	call, answer time.Duration
}

// wishing is the JetStream of a client, which notes its wishes.
type wishing struct {
	jetstream.JetStream
	h      *history
	client int
}

func (w *wishing) PublishMsg(ctx context.Context, m *nats.Msg, o ...jetstream.PublishOpt) (*jetstream.PubAck, error) {
	call := time.Since(w.h.begun)
	ack, err := w.JetStream.PublishMsg(ctx, m, o...)
	if strings.Contains(m.Header.Get("Changeset-Record"), `"kind":"wish"`) {
		answer := time.Since(w.h.begun)
		if err != nil {
			answer = math.MaxInt64 // it may still arrive
		}
		w.h.mu.Lock()
		defer w.h.mu.Unlock()
		w.h.wishes = append(w.h.wishes, wish{w.client, call, answer})
	}
	return ack, err
}

// wished reports whether a wish of another client may have fenced one who claimed after a
// time, and was told so before another.
func (h *history) wished(client int, claimed, told time.Duration) bool {
	return slices.ContainsFunc(h.wishes, func(w wish) bool {
		return w.client != client && w.call < told && w.answer > claimed
	})
}

// done notes an operation that began at a time.
func (h *history) done(client int, call time.Duration, in opInput, out opOutput) {
	op := porcupine.Operation{ClientId: client, Input: in, Call: int64(call), Output: out, Return: int64(time.Since(h.begun))}
	h.mu.Lock()
	defer h.mu.Unlock()
	if out.unknown {
		h.open = append(h.open, op)
	} else {
		h.ops = append(h.ops, op)
	}
}

// wrong notes an error that must not be.
func (h *history) wrong(what string, err error) {
	if !h.t.Failed() {
		h.t.Errorf("%s: %v", what, err)
	}
	h.stopped.Store(true)
}

// start starts a client.
func (h *history) start(client int, js jetstream.JetStream, o changeset.Options[string], limit time.Duration) {
	o.Stream = h.name
	js = &wishing{js, h, client}
	r, err := changeset.Open(within(h.t, 20*time.Second), js, o)
	require.NoError(h.t, err)
	rnd := rand.New(rand.NewPCG(uint64(client), 1))
	h.clients.Go(func() {
		for !h.stopped.Load() {
			if s, claim, next, ok := h.take(client, js, o, limit); ok {
				for h.append(client, s, claim, next, limit) && !h.stopped.Load() {
					next++
				}
			}
			if h.reads {
				h.read(client, r, limit)
			}
			time.Sleep(time.Duration(rnd.Int64N(int64(20 * time.Millisecond))))
		}
	})
}

// take claims the trail for another Store, and returns that, the number of the claim, and
// the Seq of the next entry.
func (h *history) take(client int, js jetstream.JetStream, o changeset.Options[string], limit time.Duration) (s *changeset.Store[string], claim int, next uint64, ok bool) {
	ctx, cancel := context.WithTimeout(background, limit)
	defer cancel()
	s, err := changeset.Open(ctx, js, o)
	if err != nil {
		if ctx.Err() == nil {
			h.wrong("open", err)
		}
		return nil, 0, 0, false
	}
	in := opInput{kind: opTake, claim: int(h.claims.Add(1))}
	var out opOutput
	call := time.Since(h.begun)
	err = s.Claim(ctx)
	if err == nil {
		for c, failed := range s.Load(ctx) {
			for _, e := range c.Entries {
				out.values, next = out.values+e.Value, e.Seq+1
			}
			err = failed
		}
	}
	if err != nil {
		if ctx.Err() == nil {
			h.wrong("take", err)
		}
		out = opOutput{unknown: true}
	}
	h.done(client, call, in, out)
	return s, in.claim, next, err == nil
}

// append appends an entry, and reports whether it is there. It repeats a call whose
// outcome is not known once, as a tracker does.
func (h *history) append(client int, s *changeset.Store[string], claim int, seq uint64, limit time.Duration) bool {
	in := opInput{kind: opAppend, claim: claim, value: fmt.Sprint(h.values.Add(1), " ")}
	var out opOutput
	call := time.Since(h.begun)
	var err error
	for range 2 {
		ctx, cancel := context.WithTimeout(background, limit)
		err = s.Append(ctx, "a", []entry{{Seq: seq, Value: in.value}})
		cancel()
		if !errors.Is(err, changeset.ErrUnknown) {
			break
		}
	}
	switch {
	case err == nil:
	case errors.Is(err, changeset.ErrFenced):
		out.fenced = true
	case errors.Is(err, context.DeadlineExceeded):
		out.unknown = true
	default:
		h.wrong("append", err)
	}
	h.done(client, call, in, out)
	return err == nil
}

func (h *history) read(client int, r *changeset.Store[string], limit time.Duration) {
	ctx, cancel := context.WithTimeout(background, limit)
	defer cancel()
	var out opOutput
	call := time.Since(h.begun)
	for c, err := range r.Load(ctx) {
		if err != nil {
			if ctx.Err() == nil {
				h.wrong("read", err)
			}
			return
		}
		for _, e := range c.Entries {
			out.values += e.Value
		}
	}
	h.done(client, call, opInput{kind: opRead}, out)
}

// check ends the clients, and fails the test if their history is not linearizable.
func (h *history) check() {
	h.t.Helper()
	h.stopped.Store(true)
	h.clients.Wait()
	end := int64(time.Since(h.begun))
	claimed := map[int]int64{} // when each claim began
	for _, op := range h.ops {
		if in := op.Input.(opInput); in.kind == opTake {
			claimed[in.claim] = op.Call
		}
	}
	for i, op := range h.ops {
		if in := op.Input.(opInput); op.Output.(opOutput).fenced {
			in.wished = h.wished(op.ClientId, time.Duration(claimed[in.claim]), time.Duration(op.Return))
			h.ops[i].Input = in
		}
	}
	for i, op := range h.open {
		op.Return, op.ClientId = end, 1000+i // its client has gone on
		h.ops = append(h.ops, op)
	}
	result, info := porcupine.CheckOperationsVerbose(model, h.ops, time.Minute)
	h.t.Logf("%d operations, %d claims, %d wishes, %d entries tried, %d unknown: %v", len(h.ops), h.claims.Load(), len(h.wishes), h.values.Load(), len(h.open), result)
	if result != porcupine.Ok {
		path := h.t.ArtifactDir() + "/history.html"
		require.NoError(h.t, porcupine.VisualizePath(model, info, path))
		h.t.Fatalf("the history is not linearizable: %v, %s", result, path)
	}
}

func newHistory(t *testing.T, js jetstream.JetStream, replicas int) *history {
	h := &history{t: t, name: stream(t, js, replicas), begun: time.Now()}
	s := open(t, js, h.name)
	require.NoError(t, s.Claim(background))
	require.NoError(t, s.Start(background, header{ID: "a", Ordinal: 1}))
	return h
}

// Clients who take a trail from each other, and append to it, and read it, make one
// history while messages and acknowledgements are lost, or late.
func TestHistory(t *testing.T) {
	t.Parallel()
	js := single(t)
	h := newHistory(t, js, 1)
	h.reads = true
	var all []*faulty
	for client := range 4 {
		rnd := rand.New(rand.NewPCG(uint64(client), 2))
		f := &faulty{JetStream: js}
		f.set(func(int, *nats.Msg) fault {
			if n := rnd.IntN(30); n <= int(late) {
				return fault(n)
			}
			return none
		})
		all = append(all, f)
		h.start(client, f, changeset.Options[string]{AckWait: 10 * time.Millisecond}, 25*time.Millisecond)
	}
	for range 100 {
		time.Sleep(5 * time.Millisecond)
		for _, f := range all {
			f.deliver()
		}
	}
	h.check()
}

// The same for three servers that are killed and cut off. Reads that a leader answers which is
// cut off are none of it.
func TestHistoryLong(t *testing.T) {
	natstest.NeedsLong(t, "takes a minute")
	c := natstest.Start(t, 3)
	for _, cut := range []bool{false, true} {
		h := newHistory(t, c.JetStream(), 3)
		h.reads = !cut
		for client := range 6 {
			js, err := jetstream.New(c.ConnectTo(client % 3))
			require.NoError(t, err)
			h.start(client, js, changeset.Options[string]{}, 2*time.Second)
		}
		for range 3 {
			time.Sleep(300 * time.Millisecond)
			leader := c.StreamLeader(h.name)
			if cut {
				c.Partition(leader, false)
				time.Sleep(8 * time.Second)
				c.Heal(leader)
			} else {
				c.Kill(leader)
				time.Sleep(time.Second)
				c.Restart(leader)
			}
			c.WaitReady()
		}
		time.Sleep(300 * time.Millisecond)
		h.check()
	}
}

// The model tells right histories from wrong ones.
func TestModel(t *testing.T) {
	for text, ok := range map[string]bool{
		"take 1; append 1 a; read a":                           true,
		"take 1; append 1 a; read -":                           false,
		"take 1; take 2 -; append 1 a":                         false,
		"take 1; take 2 -; fenced 1 a; append 2 b; read b":     true,
		"take 1; fenced 1 a":                                   false,
		"take 1; append 1 a; take 2 -":                         false,
		"take 1; append 1 a; take 2 a; append 2 b; read ab":    true,
		"take 1; append 1 a; take 2 a; append 2 b; read b":     false,
		"take 1; append 1 a; take 2 a; append 2 b; read a":     false,
		"take 1; unknown 1 a; take 2 a; append 2 b; read ab":   true,
		"take 1; unknown 1 a; take 2 -; append 2 b; read b":    true,
		"take 1; unknown 1 a; take 2 -; append 2 b; read ba":   false,
		"take 1; unknown 1 a; take 2 a; append 2 b; read aba":  false,
		"take 1; unknown 1 a; append 1 b; read ba":             true,
		"take 1; takes 2; append 1 a; fenced 1 b; take 3 a":    true,
		"take 1; takes 2; fenced 1 b; append 1 a; read a":      false,
		"take 1; takes 2; fenced 1 b; take 3 -; append 3 c":    true,
		"take 1; takes 2; unknown 1 b; take 3 b; append 3 c":   true,
		"take 1; fenced 1 b; takes 2; take 3 -; append 3 c":    false,
		"take 1; append 1 a; read a; take 2 a; read a; read a": true,
		"take 1; wished 1 a; take 2 -; append 2 b; read b":     true,
		"take 1; wished 1 a; take 2 a":                         false,
		"take 1; wished 1 a; append 1 b":                       false,
	} {
		var ops []porcupine.Operation
		calls := strings.Split(text, "; ")
		for i, call := range calls {
			word := append(strings.Fields(call), "", "")
			claim := int(word[1][0] - '0')
			value := strings.Trim(word[2], "-")
			op := porcupine.Operation{ClientId: i, Call: int64(2 * i), Return: int64(2*i + 1)}
			var in opInput
			var out opOutput
			switch word[0] {
			case "take":
				in, out = opInput{kind: opTake, claim: claim}, opOutput{values: value}
			case "takes":
				in, out = opInput{kind: opTake, claim: claim}, opOutput{unknown: true}
			case "append", "fenced", "wished", "unknown":
				in.kind, in.claim, in.value, in.wished = opAppend, claim, value, word[0] == "wished"
				out = opOutput{fenced: word[0] == "fenced" || in.wished, unknown: word[0] == "unknown"}
			case "read":
				out.values = strings.Trim(word[1], "-")
				in.kind = opRead
			}
			op.Input, op.Output = in, out
			if out.unknown {
				op.Return = int64(2 * len(calls))
			}
			ops = append(ops, op)
		}
		require.Equal(t, ok, porcupine.CheckOperations(model, ops), text)
	}
}
