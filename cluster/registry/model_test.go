package registry

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// Operations of two registries on one bucket, one after the other, mean what they mean on a
// map. Between them a mirror may list again.
func testModel(t *testing.T) {
	n := 12
	if long {
		n = 500
	}
	for seed := range n {
		program := make([]byte, 40)
		for i := range program {
			seed = seed*1103515245 + 12345
			program[i] = byte(seed >> 16)
		}
		runModel(t, program)
	}
}

func runModel(t *testing.T, program []byte) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	kv := bucket(t, shared.js)
	var both [2]*Registry[string, int]
	for i := range both {
		r, err := Open(ctx, shared.js, kv.Bucket(), Config[string, int]{Heartbeat: minHeartbeat})
		require.NoError(t, err)
		defer r.Close(ctx)
		both[i] = r
	}
	type cell struct {
		value   int
		version Version
	}
	model := map[string]cell{}
	var last Version
	old := Version(1)
	for n, b := range program {
		r, k := both[b&1], []string{"", "a", "ü"}[int(b>>1&3)%3]
		now, present := model[k]
		want := now.version
		if b&64 != 0 {
			want = old
		}
		has := present && want == now.version
		stored := func(v Version, err error) {
			require.NoError(t, err)
			require.Greater(t, v, last)
			last, old = v, now.version
			model[k] = cell{n, v}
		}
		switch b >> 3 & 7 {
		case 0:
			v, err := r.Create(ctx, k, n)
			if present {
				require.ErrorIs(t, err, ErrExists)
			} else {
				stored(v, err)
			}
		case 1:
			v, err := r.Put(ctx, k, n)
			stored(v, err)
		case 2:
			e, err := r.Update(ctx, k, func(old int) (int, error) { require.True(t, present); return n, nil })
			if present {
				stored(e.Version, err)
			} else {
				require.ErrorIs(t, err, ErrNotFound)
			}
		case 3, 4:
			v, err := r.UpdateIf(ctx, k, want, n)
			if has {
				stored(v, err)
			} else {
				require.True(t, errors.Is(err, ErrConflict) && present || errors.Is(err, ErrNotFound) && !present, "%v", err)
			}
		case 5:
			e, ok, err := r.Delete(ctx, k)
			require.NoError(t, err)
			require.Equal(t, present, ok)
			if ok {
				require.Equal(t, Entry[string, int]{Key: k, Value: now.value, Version: now.version}, e)
			}
			old = now.version
			delete(model, k)
		case 6:
			err := r.DeleteIf(ctx, k, want)
			if has {
				require.NoError(t, err)
				delete(model, k)
			} else {
				require.True(t, errors.Is(err, ErrConflict) && present || errors.Is(err, ErrNotFound) && !present, "%v", err)
			}
		case 7:
			r.listAgain()
		}
		for _, r := range both {
			require.NoError(t, r.Sync(ctx))
			require.Equal(t, len(model), r.Len())
			for k, c := range model {
				e, ok := r.Lookup(k)
				require.True(t, ok)
				require.Equal(t, Entry[string, int]{Key: k, Value: c.value, Version: c.version}, e)
			}
		}
	}
}
