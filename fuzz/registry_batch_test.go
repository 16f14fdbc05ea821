package fuzz

import (
	"errors"
	"runtime"

	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/internal/model"
	"github.com/latchfree/latchfree/shardedregistry"
)

// getOrCreate runs GetOrCreate with a function that ends in the given way, on a
// goroutine of its own, which the function may end.
func (s *registryRun) getOrCreate(name string, ending registryEnding) {
	type result struct {
		value    int
		created  bool
		err      error
		panicked any
		returned bool
	}
	key, bad := normalizeName(name)
	have, present := s.m.Live[key]
	value, ran := s.value, false
	var got result
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { got.panicked = recover() }()
		got.value, got.created, got.err = s.r.GetOrCreate(name, func() (int, error) {
			ran = true
			switch ending {
			case functionFails:
				return value, errFunction
			case functionPanics:
				panic(errFunction)
			case functionExits:
				runtime.Goexit()
			case functionPutsOnce:
				s.step(5, name, 0)
			case functionDeletes:
				s.step(7, name, 0)
			case functionSnapshots:
				s.step(10, name, 0)
			}
			return value, nil
		})
		got.returned = true
	}()
	<-done
	if bad != nil {
		require.False(s.t, ran)
		s.rejected(bad, got.err)
		return
	}
	require.Equal(s.t, !present, ran)
	want := result{returned: true}
	switch {
	case present:
		want.value = have.Value
	case ending == functionFails:
		want.err = errFunction
	case ending == functionPanics:
		want = result{panicked: errFunction}
	case ending == functionExits:
		want = result{}
	case ending == functionPutsOnce:
		want.value = s.m.Live[key].Value // and what the function returned is discarded
	default:
		s.m.Put(key, name, value)
		want.value, want.created = value, true
	}
	require.Equal(s.t, want, got)
}

// createMany creates those of the names whose bit is set, in their order.
func (s *registryRun) createMany(names int) {
	value := s.value
	n, err := s.r.CreateMany(func(yield func(string, int) bool) {
		for i, name := range registryNames {
			if names>>i&1 == 1 && !yield(name, value) {
				s.t.Error("CreateMany leaves keys out")
			}
		}
	})
	var want []error
	created := 0
	for i, name := range registryNames {
		if names>>i&1 == 0 {
			continue
		}
		key, bad := normalizeName(name)
		if bad != nil {
			want = append(want, bad)
			continue
		}
		if e, out := s.m.Create(key, name, value); out == model.Done {
			created++
		} else {
			want = append(want, &shardedregistry.ExistsError{Given: name, Stored: e.Spelled, Version: shardedregistry.Version(e.Version)})
		}
	}
	require.Equal(s.t, created, n)
	if len(want) == 0 {
		require.NoError(s.t, err)
		return
	}
	got := err.(interface{ Unwrap() []error }).Unwrap()
	require.Len(s.t, got, len(want))
	for i, err := range got {
		if invalid := new(shardedregistry.KeyError); errors.As(err, &invalid) {
			require.Equal(s.t, "", invalid.Key)
			require.ErrorIs(s.t, err, shardedregistry.ErrInvalidKey)
			require.ErrorIs(s.t, err, want[i])
			continue
		}
		require.Equal(s.t, want[i], err)
	}
}

// deleteMatching deletes what has a value with the wanted remainder. If how says
// so, the function changes or deletes the first key that it is asked about.
func (s *registryRun) deleteMatching(how int) {
	remainder, first := how%3, how/3%3
	asked, deleted := map[string]int{}, 0
	overtaken := ""
	n := s.r.DeleteMatching(func(e shardedregistry.Entry[string, int]) bool {
		asked[e.Key]++
		require.Equal(s.t, s.entry(e.Key, s.m.Live[e.Key]), e)
		if first > 0 && overtaken == "" {
			overtaken = e.Key
			s.step([]byte{5, 7}[first-1], e.Key, 0)
			return true // what it was asked about is gone
		}
		if e.Value%3 != remainder {
			return false
		}
		_, out := s.m.DeleteIf(e.Key, int(e.Version))
		require.Equal(s.t, model.Done, out)
		deleted++
		return true
	})
	require.Equal(s.t, deleted, n)
	for k, n := range asked {
		if k == overtaken && first == 1 {
			n-- // asked again
		}
		require.Equal(s.t, 1, n)
	}
	for k, e := range s.m.Live {
		require.Contains(s.t, asked, k)
		require.NotEqual(s.t, remainder, e.Value%3)
	}
}
