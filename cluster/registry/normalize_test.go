package registry

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/shardedregistry"
)

var errBlank = errors.New("a name must not be blank")

// lower is a Config.Normalize.
func lower(key string) (string, error) {
	if key = strings.ToLower(strings.TrimSpace(key)); key == "" {
		return "", errBlank
	}
	return key, nil
}

func normalizing(c *Config[string, plan]) { c.Normalize = lower }

// Every method takes any spelling, and the bucket has the one of Config.Normalize.
func testNormalize(t *testing.T) {
	ctx := within(t)
	kv := bucket(t, shared.js, func(c *jetstream.KeyValueConfig) { c.LimitMarkerTTL = time.Second })
	r := opened(t, shared.js, kv, normalizing)
	other := opened(t, shared.js, kv, normalizing)

	v1, err := r.Create(ctx, " Backup", plan{"ada", 1})
	require.NoError(t, err)
	stored, err := kv.Get(ctx, "backup")
	require.NoError(t, err)
	require.EqualValues(t, v1, stored.Revision())
	_, err = other.Create(ctx, "BACKUP", plan{})
	var exists *ExistsError
	require.ErrorAs(t, err, &exists)
	require.Equal(t, ExistsError{Given: "BACKUP", Stored: "backup", Version: v1}, *exists)

	want := Entry[string, plan]{Key: "backup", Value: plan{"ada", 1}, Version: v1}
	entry, ok := r.Lookup("BackUp")
	require.True(t, ok)
	require.Equal(t, want, entry)
	value, ok := r.Get("BackUp ")
	require.True(t, ok)
	require.Equal(t, want.Value, value)
	entry, ok = r.Snapshot().Lookup("BACKUP")
	require.True(t, ok)
	require.Equal(t, want, entry)
	value, ok = r.Snapshot().Get("BACKUP")
	require.True(t, ok)
	require.Equal(t, want.Value, value)
	entry, err = r.Wait(ctx, "BACKUP", 0)
	require.NoError(t, err)
	require.Equal(t, want, entry)

	entry, err = r.Update(ctx, "BACKUP", func(p plan) (plan, error) { p.N++; return p, nil })
	require.NoError(t, err)
	require.Equal(t, "backup", entry.Key)
	require.Equal(t, 2, entry.Value.N)
	v3, err := r.UpdateIf(ctx, "BACKUP", entry.Version, plan{"ada", 3})
	require.NoError(t, err)
	v4, err := r.Put(ctx, "BACKUP", plan{"ada", 4})
	require.NoError(t, err)
	require.Greater(t, v4, v3)
	entry, ok, err = r.Delete(ctx, "BACKUP")
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, Entry[string, plan]{Key: "backup", Value: plan{"ada", 4}, Version: v4}, entry)
	v5, err := r.Create(ctx, "LEASE", plan{}, TTL(minTTL*60))
	require.NoError(t, err)
	v6, err := r.Renew(ctx, "Lease", v5, minTTL*60)
	require.NoError(t, err)
	require.NoError(t, r.DeleteIf(ctx, "LEASE", v6))
	require.Zero(t, r.Len())

	heard := make(chan Event[string, plan], 1)
	watching, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		for s, e := range other.WatchSnapshot(watching, shardedregistry.Keys("WATCHED")) {
			if s != nil {
				heard <- Event[string, plan]{}
			} else {
				heard <- e
			}
		}
	}()
	<-heard
	_, err = r.Put(ctx, "Watched", plan{"eve", 1})
	require.NoError(t, err)
	require.Equal(t, "watched", (<-heard).Key)

	for _, blank := range []string{"", " "} {
		_, ok := r.Get(blank)
		require.False(t, ok)
		_, ok = r.Lookup(blank)
		require.False(t, ok)
		for method, err := range map[string]error{
			"Create":   second(r.Create(ctx, blank, plan{})),
			"Put":      second(r.Put(ctx, blank, plan{})),
			"Update":   second(r.Update(ctx, blank, func(p plan) (plan, error) { return p, nil })),
			"UpdateIf": second(r.UpdateIf(ctx, blank, 1, plan{})),
			"DeleteIf": r.DeleteIf(ctx, blank, 1),
			"Wait":     second(r.Wait(ctx, blank, 0)),
		} {
			require.ErrorIs(t, err, ErrInvalidKey, method)
			require.ErrorIs(t, err, errBlank, method)
		}
	}
}

func second[A any](_ A, err error) error { return err }

// Keys that others have written in another spelling are foreign, also in a listing, and a
// function that fails makes them so.
func testNormalizeForeign(t *testing.T) {
	ctx := within(t)
	kv := bucket(t, shared.js)
	var told foreigners
	config := func(c *Config[string, plan]) {
		c.OnForeign = told.told
		c.Codec = rude{}
		c.Normalize = func(key string) (string, error) {
			switch key {
			case "panics":
				panic("no")
			case "exits":
				runtime.Goexit()
			}
			return lower(key)
		}
	}
	require.NoError(t, put(kv, "Listed", "{}"))
	require.NoError(t, put(kv, "good", "{}"))
	r := opened(t, shared.js, kv, config)
	require.Equal(t, []string{"Listed"}, told.keys())
	for _, key := range []string{"Watched", "panics", "exits"} {
		require.NoError(t, put(kv, key, "{}"))
	}
	require.NoError(t, put(kv, "better", "{}"))
	require.NoError(t, r.Sync(ctx))
	require.Equal(t, 2, r.Len())
	require.Equal(t, 4, r.Stats().ForeignKeys)
	require.Equal(t, []string{"Listed", "Watched", "panics", "exits"}, told.keys())
	told.mu.Lock()
	require.ErrorIs(t, told.list[0].Err, errSpelling)
	told.mu.Unlock()
	_, ok := r.Get("Listed")
	require.False(t, ok)
	_, err := r.Create(ctx, "Listed", plan{"ada", 1})
	require.NoError(t, err)
	require.NoError(t, kv.Delete(ctx, "Listed"))
	require.NoError(t, r.Sync(ctx))
	require.Equal(t, 3, r.Stats().ForeignKeys)
	value, ok := r.Get("Listed")
	require.True(t, ok)
	require.Equal(t, plan{"ada", 1}, value)

	// A value whose Decode exits is foreign, and its key is not.
	require.NoError(t, put(kv, "value", "exit"))
	require.NoError(t, r.Sync(ctx))
	require.Equal(t, 3, r.Stats().ForeignKeys)
	require.Equal(t, 1, r.Stats().ForeignValues)
	_, err = r.Create(ctx, "Value", plan{})
	require.ErrorIs(t, err, ErrForeign)
}
