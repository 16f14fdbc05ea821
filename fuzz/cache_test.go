package fuzz

import (
	"errors"
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/fuzz/internal/model"
	"github.com/latchfree/latchfree/oncecache"
)

var errRefused = errors.New("connection refused")

// cacheEnding is how a create function ends.
type cacheEnding byte

const (
	endsInValue cacheEnding = iota
	endsInError
	endsInPanic
	endsInGoexit
	cacheEndings
)

// err is what the ending is for those who wait, but that a panic's error
// carries its value.
func (e cacheEnding) err() error {
	return [...]error{nil, errRefused, errPanicked, oncecache.ErrGoexit}[e]
}

var errPanicked = errors.New("disk full")

// cacheCall is one call of GetOrCreate, on a goroutine of its own.
type cacheCall struct {
	key     int
	flight  *model.Flight
	creates bool // according to the model
	makes   int  // the value, if it creates one

	end    chan cacheEnding // how the create function is told to end
	ending cacheEnding
	ended  bool // it was told

	// Written by the goroutine, and read after synctest.Wait.
	begun, done, exited bool
	value               int
	err                 error
	panicked            any
}

func (k *cacheCall) run(c *oncecache.Cache[int, int]) {
	returned := false
	defer func() {
		if k.panicked = recover(); k.panicked == nil {
			k.exited = !returned
		}
		k.done = true
	}()
	k.value, k.err = c.GetOrCreate(k.key, func() (int, error) {
		k.begun = true
		switch <-k.end {
		case endsInError:
			return k.makes, errRefused
		case endsInPanic:
			panic(errPanicked)
		case endsInGoexit:
			runtime.Goexit()
		}
		return k.makes, nil
	})
	returned = true
}

// check compares the call with what the model says about it by now.
func (k *cacheCall) check(t *testing.T) {
	require.Equal(t, k.creates, k.begun, "create function called")
	if k.creates {
		require.Equal(t, k.ended, k.done, "owner returned")
	} else {
		require.Equal(t, k.flight.Over, k.done, "caller returned")
	}
	if !k.done {
		return
	}
	panics := k.creates && k.ending == endsInPanic
	exits := k.creates && k.ending == endsInGoexit
	require.Equal(t, exits, k.exited, "exited")
	if panics {
		require.Equal(t, errPanicked, k.panicked)
	} else {
		require.Nil(t, k.panicked)
	}
	if panics || exits {
		return
	}
	require.Equal(t, k.flight.Value, k.value)
	require.ErrorIs(t, k.err, k.flight.Err)
	if k.flight.Err == errPanicked {
		require.ErrorAs(t, k.err, new(*oncecache.PanicError))
	}
}

// FuzzCacheOps reads two bytes for each operation: which one, and the key with
// what else the operation needs. Creations stay in flight, with other callers
// waiting for them, until an operation ends them.
func FuzzCacheOps(f *testing.F) {
	f.Fuzz(func(t *testing.T, ops []byte) {
		if len(ops) > 200 {
			return // longer ones find nothing that these do not
		}
		synctest.Test(t, func(t *testing.T) { cacheOps(t, ops) })
	})
}

func cacheOps(t *testing.T, ops []byte) {
	var c oncecache.Cache[int, int]
	m := model.NewCache()
	var calls []*cacheCall
	var open []*cacheCall // creations in flight
	end := func(i int, how cacheEnding) {
		k := open[i]
		open = append(open[:i], open[i+1:]...)
		k.ending, k.ended = how, true
		v := k.makes
		if how != endsInValue {
			v = 0
		}
		m.End(k.key, k.flight, v, how.err())
		k.end <- how
	}
	defer func() { // whatever happened, leave nobody behind
		for _, k := range open {
			close(k.end)
		}
	}()

	for v := 1; len(ops) >= 2; v++ {
		op, arg := ops[0]%8, int(ops[1])
		ops = ops[2:]
		key, rest := arg%3, arg/3
		switch op {
		case 0: // GetOrCreate
			k := &cacheCall{key: key, makes: v, end: make(chan cacheEnding)}
			k.flight, k.creates = m.Begin(key)
			calls = append(calls, k)
			if k.creates {
				open = append(open, k)
			}
			go k.run(&c)
		case 1: // a create function ends
			if len(open) > 0 {
				end(key%len(open), cacheEnding(rest)%cacheEndings)
			}
		case 2:
			got, ok := c.Get(key)
			want, wantOK := m.Get(key)
			require.Equal(t, wantOK, ok, "Get")
			require.Equal(t, want, got, "Get")
		case 3:
			old, replaced := c.Set(key, v)
			wantOld, wantReplaced := m.Set(key, v)
			require.Equal(t, wantReplaced, replaced, "Set")
			require.Equal(t, wantOld, old, "Set")
		case 4:
			require.Equal(t, m.SetIfAbsent(key, v), c.SetIfAbsent(key, v), "SetIfAbsent")
		case 5:
			old, deleted := c.Delete(key)
			wantOld, wantDeleted := m.Delete(key)
			require.Equal(t, wantDeleted, deleted, "Delete")
			require.Equal(t, wantOld, old, "Delete")
		case 6:
			old, _ := m.Get(key)
			old -= rest % 2 // the value that is there, or another
			require.Equal(t, m.CompareAndDelete(key, old), oncecache.CompareAndDelete(&c, key, old), "CompareAndDelete")
		case 7:
			want, got := m.All(), map[int]int{}
			for k, v := range c.All() {
				require.NotContains(t, got, k, "All yields a key twice")
				got[k] = v
			}
			require.Equal(t, want, got, "All")
			require.Equal(t, len(want), c.Len(), "Len")
		}
		synctest.Wait()
		for _, k := range calls {
			k.check(t)
		}
	}
	for len(open) > 0 {
		end(0, endsInValue)
		synctest.Wait()
	}
	for _, k := range calls {
		k.check(t)
	}
	require.Equal(t, len(m.All()), c.Len(), "Len")
}
