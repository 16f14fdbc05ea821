//go:build modelcheck

package interleavings

import (
	"context"
	"strings"
	"testing"

	"github.com/latchfree/latchfree/fuzz/internal/interleave"
	"github.com/latchfree/latchfree/oncecache"
)

// Programs with Refresh, Wait and GetOrCreateMany find what is done in
// two steps there, too.
func TestCacheInterleavingsFindBrokenOthers(t *testing.T) {
	for prefix, broken := range map[string]func(cache) cache{
		"refresh": func(c cache) cache { return refreshSets{c} },
		"wait":    func(c cache) cache { return waitLooks{c} },
		"many":    func(c cache) cache { return manySets{c} },
	} {
		t.Run(prefix, func(t *testing.T) {
			for _, seed := range seeds(t, "FuzzCacheInterleavings") {
				if !strings.HasPrefix(seed.name, prefix) {
					continue
				}
				p, _ := cacheProgram(func(c cacheConfig) cache { return broken(newCache(c)) })(seed.program)
				one := p.Sequential()
				if r := p.Sample(samples, nil); r.Failure != "" && one.Explore(interleave.Quick).Failure == "" {
					t.Logf("%s: %s", seed.name, r.Failure)
					return
				}
			}
			t.Error("nothing is found in what is broken")
		})
	}
}

// refreshSets replaces what has come meanwhile.
type refreshSets struct{ cache }

func (c refreshSets) Refresh(ctx context.Context, k int, create refreshFunc) (int, error) {
	old, ok := c.Get(k)
	if !ok {
		return c.cache.Refresh(ctx, k, create)
	}
	v, err := create(ctx, k, old, true)
	if err != nil {
		return 0, err
	}
	c.Set(k, v)
	return v, nil
}

// waitLooks looks once more instead of waiting.
type waitLooks struct{ cache }

func (c waitLooks) Wait(ctx context.Context, k int) (int, error) {
	if v, ok := c.Get(k); ok {
		return v, nil
	}
	if _, ok := c.Get(k); ok {
		return c.cache.Wait(ctx, k)
	}
	return 0, oncecache.ErrNotFound
}

// manySets creates what it has just seen to be absent.
type manySets struct{ cache }

func (c manySets) GetOrCreateMany(ctx context.Context, keys []int, create func(context.Context, []int) (map[int]int, error)) (map[int]int, error) {
	found, missing := map[int]int{}, []int{}
	for _, k := range keys {
		if v, ok := c.Get(k); ok {
			found[k] = v
		} else {
			missing = append(missing, k)
		}
	}
	if len(missing) == 0 {
		return found, nil
	}
	made, err := create(ctx, missing)
	for k, v := range made {
		c.Set(k, v)
		found[k] = v
	}
	return found, err
}

// Only Close may end a creation of a batch whose function is not called for it.
func TestCacheInterleavingsFindUncalled(t *testing.T) {
	p, _ := cacheProgram(func(c cacheConfig) cache { return manyHides{newCache(c)} })([]byte("\x00\x75\x40"))
	if one := p.Sequential(); one.Explore(interleave.Quick).Failure == "" {
		t.Error("a batch that panics creates a key without calling the function for it, and nothing is found")
	}
}

// manyHides does not call the function for the last key that it creates, if it panics for the others.
type manyHides struct{ cache }

func (c manyHides) GetOrCreateMany(ctx context.Context, keys []int, create func(context.Context, []int) (map[int]int, error)) (found map[int]int, err error) {
	last := len(keys) - 1
	v, err := c.GetOrCreate(keys[last], func() (int, error) {
		found, err = c.cache.GetOrCreateMany(ctx, keys[:last], create)
		made, err := create(ctx, keys[last:])
		return made[keys[last]], err
	})
	found[keys[last]] = v
	return found, err
}
