//go:build modelcheck

package interleavings

import (
	"context"
	"fmt"
	"runtime"

	"github.com/latchfree/latchfree/fuzz/internal/interleave"
	model "github.com/latchfree/latchfree/internal/tools/model/oncecache"
	"github.com/latchfree/latchfree/oncecache"
)

// firstOther is the first code of what creates in other ways.
const firstOther = 48

func decodeCacheOther(code interleave.Code, key, id int) cacheOp {
	how := creationEnding(code.Arg / 32 % 4)
	switch code.Op % 8 {
	case 0:
		return cacheWait(key, -1)
	case 1:
		return cacheWait(key, 0)
	case 2, 3, 4:
		return cacheRefresh(key, id, how)
	default:
		if how == inError {
			how = inValue
		}
		return cacheMany(id, how)
	}
}

// cacheWait is a creation that does not create.
func cacheWait(key, ends int) cacheOp {
	return cacheOp{Name: fmt.Sprintf("Wait(%d) %d", key, ends), Do: func(c *cacheCaller) {
		ctx := context.Background()
		if ends >= 0 {
			ctx = c.Real.contexts[ends]
		}
		look := &cacheCreation{key: key, called: c.Begin()}
		got := fmt.Sprint(created(c.Real.Wait(ctx, key)))
		m := &cacheMoment{Op: "Wait", Got: got, From: look.called, To: c.End()}
		m.Explains = func(s *cacheModel, _ int) bool { return s.gets(look, got) }
		if got == context.Canceled.Error() {
			m.Explains = func(s *cacheModel, _ int) bool { return ends >= 0 && s.cancelled[ends] }
		} else {
			m.Follows = c.Add(&cacheMoment{Op: "waits", From: m.From, To: m.To, Ways: c.Real.ways,
				Explains: func(s *cacheModel, way int) bool { return s.wait(look, way) }})
		}
		c.Add(m)
	}}
}

// wait is the moment at which a Wait joins a creation, or finds it over or
// nothing at all.
func (s *cacheModel) wait(call *cacheCreation, way int) (ok bool) {
	ok = s.join(call, way)
	if s.calls[call] == nil {
		s.calls[call] = &model.Flight{Over: true, Err: oncecache.ErrNotFound}
	}
	return ok
}

// cacheMany creates both keys, each of which takes effect at moments of its own.
func cacheMany(v int, how creationEnding) cacheOp {
	return cacheOp{Name: fmt.Sprintf("GetOrCreateMany(%d) by %v", v, how), Do: func(c *cacheCaller) {
		called := c.Begin()
		var both [2]*asking
		for key := range both {
			a := &asking{as: flavour{"GetOrCreateMany", true, -1}, how: how, again: new(cacheCreation)}
			for i := range a.looks {
				a.looks[i] = &cacheCreation{key: key, called: called, value: v + 30*key + 60*i, err: how.err()}
			}
			both[key], *a.again = a, *a.looks[0]
			c.Real.creations[c.Thread] = append(c.Real.creations[c.Thread], a.looks[:]...)
			a.moments(c)
		}
		thrown := interleave.Exits
		var found map[int]int
		var err error
		defer func() {
			if p := recover(); p != nil {
				thrown = interleave.Panics(p)
			}
			returned := c.End()
			for key, a := range both {
				a.returned = returned
				switch v, ok := found[key]; {
				case thrown != "" && a.looks[0].ran:
					a.got = thrown
				case thrown != "":
					a.gone = true
				case ok:
					a.got = fmt.Sprint(v)
				default:
					a.got = "an error"
					a.others = errorsOf(err)
				}
			}
		}()
		found, err = c.Real.GetOrCreateMany(context.Background(), []int{0, 1}, func(_ context.Context, keys []int) (map[int]int, error) {
			made := map[int]int{}
			var looks []*cacheCreation
			for _, key := range keys {
				a := both[key]
				look := a.looks[a.runs.Value()]
				a.runs.Add(1)
				look.ran, look.began = true, c.End()
				made[key], looks = look.value, append(looks, look)
			}
			ended := c.Begin()
			for _, look := range looks {
				look.ended = ended
			}
			switch how {
			case inPanic:
				panic(errInjected)
			case inGoexit:
				runtime.Goexit()
			}
			return made, nil
		})
		thrown = ""
	}}
}

// errorsOf prints the errors that were joined.
func errorsOf(err error) (all []string) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, err := range joined.Unwrap() {
			all = append(all, fmt.Sprint(created(0, err)))
		}
		return all
	}
	return []string{fmt.Sprint(created(0, err))}
}
