//go:build modelcheck

package interleavings

import (
	"fmt"

	model "github.com/latchfree/latchfree/internal/tools/model/oncecache"
	"github.com/latchfree/latchfree/oncecache"
)

// cacheModel is the model with what calls take part in. When it is closed, an
// empty one takes its place, and calls that the Close overtakes may still use
// the one before, from which Close removes one key after the other. What they
// store there, they remove again.
type cacheModel struct {
	open      *model.Cache
	closed    bool
	closing   interval // the Close that closed it
	calls     map[*cacheCreation]*model.Flight
	cancelled [2]bool              // contexts
	absent    map[*refreshing]bool // what a Refresh has found

	// uncalled has the creations whose functions are not called: Close must end them.
	uncalled map[*cacheCreation]bool
}

func newCacheModel() *cacheModel {
	return &cacheModel{
		open: model.NewCache(), calls: map[*cacheCreation]*model.Flight{},
		absent: map[*refreshing]bool{}, uncalled: map[*cacheCreation]bool{},
	}
}

// The ways to explain an operation. In a bounded cache, the value of a key may
// have gone before, of which nobody knows yet.
const (
	asUsual = iota
	overtaken
	cacheWays

	cacheEvictions = 3 // none, of the one key, of the other
)

// in returns what an operation that began at from uses, nil for a closed cache.
func (s *cacheModel) in(from int64, way int) (c *model.Cache, ok bool) {
	if evicted := way/cacheWays - 1; evicted >= 0 {
		if _, there := s.open.Get(evicted); !there {
			return nil, false // as good as another way
		}
		s.open.Lose(evicted)
	}
	switch way %= cacheWays; {
	case way == overtaken:
		return s.open, s.closed && from < s.closing.to
	case s.closed:
		return nil, true
	}
	return s.open, true
}

// close is the moment at which callers no longer find the table.
func (s *cacheModel) close(during interval) {
	if !s.closed {
		s.closed, s.closing = true, during
	}
}

// drain is the moment at which Close removes a key. A creation ends, and so does a Refresh.
func (s *cacheModel) drain(key int) {
	if f := s.open.Renewal(key); f != nil {
		s.end(f, oncecache.ErrClosed)
	}
	if f, creates := s.open.Begin(key); !creates {
		s.end(f, oncecache.ErrClosed)
	}
	s.open.Delete(key)
}

func (s *cacheModel) end(f *model.Flight, err error) {
	if !f.Over {
		*f = model.Flight{Over: true, Err: err}
	}
}

// begin is the moment at which a creation begins, or is joined, or found over.
func (s *cacheModel) begin(call *cacheCreation, way int) (creates, ok bool) {
	c, ok := s.in(call.called.At, way)
	if c == nil {
		s.calls[call] = &model.Flight{Over: true, Err: oncecache.ErrClosed}
		return false, ok
	}
	s.calls[call], creates = c.Begin(call.key)
	return creates, ok
}

// join is begin, but does not create.
func (s *cacheModel) join(call *cacheCreation, way int) (ok bool) {
	creates, ok := s.begin(call, way)
	if creates {
		s.calls[call] = nil
		s.open.Delete(call.key) // forgets it
	}
	return ok
}

// ends is the moment at which a creation ends whose function was called.
func (s *cacheModel) ends(call *cacheCreation) {
	v := call.value
	if call.err != nil {
		v = 0
	}
	s.open.End(call.key, s.calls[call], v, call.err)
}

// gone is the moment at which a call for several keys ends without an outcome for
// one of them.
func (s *cacheModel) gone(call *cacheCreation) bool {
	if !s.uncalled[call] {
		return true
	}
	s.end(s.calls[call], oncecache.ErrClosed)
	return s.closed
}

// gets reports whether a call that takes part in a creation may get a result.
// In a closed cache that may be ErrClosed, also if Delete came before Close.
func (s *cacheModel) gets(call *cacheCreation, got string) bool {
	f := s.calls[call]
	if f == nil {
		return false
	}
	if got == oncecache.ErrClosed.Error() && s.closed {
		s.end(f, oncecache.ErrClosed)
	}
	// Nobody gets the error of a creation that was called off.
	return f.Over && f.Err != errCalledOff && got == fmt.Sprint(created(f.Value, f.Err))
}
