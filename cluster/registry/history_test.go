package registry

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"
)

// The model of one key: what it holds, and at which version, if somebody was told.
type keyState struct {
	value   int // 0: absent
	version Version
}

type opKind int

const (
	opRead opKind = iota // Sync and Lookup
	opCreate
	opPut
	opUpdate
	opUpdateIf
	opDelete
	opDeleteIf
)

type opInput struct {
	kind  opKind
	key   string
	value int     // that is stored, each once
	want  Version // of the -If methods
}

type opOutput struct {
	unknown bool // it may have taken effect, may still do so, or may not
	nothing bool // it has not taken effect, and says nothing about the key
	old     int  // what the key held before, or holds, according to the answer
	version Version
	err     error // ErrExists, ErrNotFound, ErrConflict
}

// model is the sequential meaning of the methods on one key.
var model = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		byKey := map[string][]porcupine.Operation{}
		for _, op := range history {
			k := op.Input.(opInput).key
			byKey[k] = append(byKey[k], op)
		}
		var parts [][]porcupine.Operation
		for _, p := range byKey {
			parts = append(parts, p)
		}
		return parts
	},
	Init: func() any { return keyState{} },
	Step: func(s, in, out any) (bool, any) {
		return stepKey(s.(keyState), in.(opInput), out.(opOutput))
	},
	Equal: func(a, b any) bool { return a == b },
	DescribeOperation: func(in, out any) string {
		i, o := in.(opInput), out.(opOutput)
		name := []string{"Read", "Create", "Put", "Update", "UpdateIf", "Delete", "DeleteIf"}[i.kind]
		if o.unknown {
			return fmt.Sprintf("%s(%d, v%d) = ?", name, i.value, i.want)
		}
		return fmt.Sprintf("%s(%d, v%d) = old %d, v%d, %v", name, i.value, i.want, o.old, o.version, o.err)
	},
}

func stepKey(s keyState, in opInput, out opOutput) (bool, keyState) {
	if out.nothing {
		return true, s
	}
	// Whether the condition of the operation holds: certainly, or perhaps if the version
	// was told to nobody.
	holds, perhaps := true, true
	switch in.kind {
	case opCreate:
		holds = s.value == 0
		perhaps = holds
	case opUpdate, opDelete:
		holds = s.value != 0
		perhaps = holds
	case opUpdateIf, opDeleteIf:
		holds = s.value != 0 && s.version == in.want
		perhaps = s.value != 0 && (s.version == 0 || s.version == in.want)
	}
	after := keyState{in.value, out.version}
	if in.kind == opDelete || in.kind == opDeleteIf {
		after = keyState{}
	}
	if out.unknown {
		if in.kind == opRead || !perhaps {
			return true, s
		}
		return true, after
	}
	switch {
	case in.kind == opRead:
		if s.value != out.old || s.value != 0 && s.version != 0 && s.version != out.version {
			return false, s
		}
		return true, keyState{s.value, out.version}
	case out.err == nil:
		if !perhaps || out.version != 0 && out.version <= s.version {
			return false, s
		}
		if (in.kind == opUpdate || in.kind == opDelete) && s.value != out.old {
			return false, s
		}
		return true, after
	case errors.Is(out.err, ErrExists):
		return s.value != 0, s
	case errors.Is(out.err, ErrNotFound):
		return s.value == 0, s
	case errors.Is(out.err, ErrConflict):
		return !holds, s
	}
	return false, s
}

// storm has clients of several registries work on few keys until it is stopped, and records
// what they did.
type storm struct {
	t       *testing.T
	prefix  string // of keys
	begun   time.Time
	stopped atomic.Bool
	values  atomic.Int64
	workers sync.WaitGroup

	mu      sync.Mutex
	history []porcupine.Operation
	open    []porcupine.Operation // whose outcome is not known
	acked   int
	wrong   []string
}

// start starts clients. Each call has so much time.
func (s *storm) start(registries []*Registry[string, int], clients, keys int, pause, limit time.Duration) {
	s.begun = time.Now()
	for c := range clients {
		s.workers.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(c), 1))
			r := registries[c%len(registries)]
			for !s.stopped.Load() {
				s.one(c, r, rnd, fmt.Sprint(s.prefix, " ", rnd.IntN(keys)), limit)
				time.Sleep(time.Duration(rnd.Int64N(int64(2 * pause))))
			}
		})
	}
}

// one does one operation and records it.
func (s *storm) one(client int, r *Registry[string, int], rnd *rand.Rand, key string, limit time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	in := opInput{kind: opKind(rnd.IntN(7)), key: key, value: int(s.values.Add(1))}
	if in.kind == opUpdateIf || in.kind == opDeleteIf {
		e, _ := r.Lookup(key)
		in.want = e.Version
	}
	var out opOutput
	call := time.Since(s.begun).Nanoseconds()
	var err error
	switch in.kind {
	case opRead:
		if err = r.Sync(ctx); err == nil {
			e, _ := r.Lookup(key)
			out.old, out.version = e.Value, e.Version
		}
	case opCreate:
		out.version, err = r.Create(ctx, key, in.value)
	case opPut:
		out.version, err = r.Put(ctx, key, in.value)
	case opUpdate:
		var e Entry[string, int]
		e, err = r.Update(ctx, key, func(old int) (int, error) {
			out.old = old
			return in.value, nil
		})
		out.version = e.Version
	case opUpdateIf:
		out.version, err = r.UpdateIf(ctx, key, in.want, in.value)
	case opDelete:
		var e Entry[string, int]
		var ok bool
		if e, ok, err = r.Delete(ctx, key); err == nil && !ok {
			err = ErrNotFound
		}
		out.old = e.Value
	case opDeleteIf:
		err = r.DeleteIf(ctx, key, in.want)
	}
	back := time.Since(s.begun).Nanoseconds()
	seen, _ := r.Lookup(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == nil, errors.Is(err, ErrBehind):
		s.acked++
		// A caller sees its own writes.
		if err == nil && out.version != 0 && in.kind != opRead && seen.Version != 0 && seen.Version < out.version {
			s.wrong = append(s.wrong, fmt.Sprintf("%s: wrote version %d, and sees %d", key, out.version, seen.Version))
		}
	case errors.Is(err, ErrUnknown):
		out = opOutput{unknown: true}
		s.open = append(s.open, porcupine.Operation{ClientId: client, Input: in, Call: call, Output: out})
		return
	case errors.Is(err, ErrUnavailable), errors.Is(err, ErrClosed):
		out = opOutput{nothing: true}
	case errors.Is(err, ErrExists), errors.Is(err, ErrNotFound), errors.Is(err, ErrConflict):
		out = opOutput{err: err}
	default:
		s.wrong = append(s.wrong, err.Error())
		return
	}
	s.history = append(s.history, porcupine.Operation{ClientId: client, Input: in, Call: call, Output: out, Return: back})
}

// stop ends the storm.
func (s *storm) stop() {
	s.stopped.Store(true)
	s.workers.Wait()
}

// check fails the test if the history is not linearizable.
func (s *storm) check() {
	s.t.Helper()
	end := time.Since(s.begun).Nanoseconds()
	for i, op := range s.open {
		op.Return = end
		op.ClientId = 1000 + i // its client has gone on
		s.history = append(s.history, op)
	}
	require.Empty(s.t, s.wrong)
	result, info := porcupine.CheckOperationsVerbose(model, s.history, time.Minute)
	s.t.Logf("%d operations, %d acknowledged, %d unknown: %v", len(s.history), s.acked, len(s.open), result)
	if result != porcupine.Ok {
		path := s.t.ArtifactDir() + "/history.html"
		require.NoError(s.t, porcupine.VisualizePath(model, info, path))
		s.t.Fatalf("the history is not linearizable: %v, %s", result, path)
	}
}

func TestModel(t *testing.T) {
	op := func(call, back int64, in opInput, out opOutput) porcupine.Operation {
		return porcupine.Operation{ClientId: int(call), Call: call, Return: back, Input: in, Output: out}
	}
	created := op(0, 1, opInput{kind: opCreate, value: 1}, opOutput{version: 5})
	for name, c := range map[string]struct {
		ok  bool
		ops []porcupine.Operation
	}{
		"read":         {true, []porcupine.Operation{created, op(2, 3, opInput{}, opOutput{old: 1, version: 5})}},
		"stale read":   {false, []porcupine.Operation{created, op(2, 3, opInput{}, opOutput{})}},
		"created over": {false, []porcupine.Operation{created, op(2, 3, opInput{kind: opCreate, value: 2}, opOutput{version: 6})}},
		"lost update": {false, []porcupine.Operation{created,
			op(2, 3, opInput{kind: opUpdate, value: 2}, opOutput{old: 1, version: 6}),
			op(4, 5, opInput{kind: opUpdate, value: 3}, opOutput{old: 1, version: 7})}},
		"unknown later": {true, []porcupine.Operation{created,
			op(2, 9, opInput{kind: opPut, value: 2}, opOutput{unknown: true}),
			op(4, 5, opInput{}, opOutput{old: 1, version: 5}),
			op(6, 7, opInput{}, opOutput{old: 2, version: 8})}},
		"unknown twice": {false, []porcupine.Operation{created,
			op(2, 19, opInput{kind: opPut, value: 2}, opOutput{unknown: true}),
			op(4, 5, opInput{}, opOutput{old: 2, version: 8}),
			op(6, 7, opInput{kind: opPut, value: 3}, opOutput{version: 9}),
			op(8, 9, opInput{}, opOutput{old: 2, version: 10})}},
		"false conflict": {false, []porcupine.Operation{created,
			op(2, 3, opInput{kind: opUpdateIf, value: 2, want: 5}, opOutput{err: ErrConflict})}},
		"false absence": {false, []porcupine.Operation{created,
			op(2, 3, opInput{kind: opDelete}, opOutput{err: ErrNotFound})}},
		"version goes back": {false, []porcupine.Operation{created,
			op(2, 3, opInput{kind: opPut, value: 2}, opOutput{version: 4})}},
	} {
		require.Equal(t, c.ok, porcupine.CheckOperations(model, c.ops), name)
	}
}
