//go:build modelcheck

package oncecache_test

import (
	"fmt"

	model "github.com/latchfree/latchfree/internal/tools/model/oncecache"
	"github.com/latchfree/latchfree/oncecache"
)

// sequential is what a cache does for one key, one event at a time.
type sequential struct {
	cache *model.Cache
	calls map[*int]*model.Flight // what they take part in
}

// modelKey stands for key in the model.
const modelKey = 1

// begin reports whether the call creates.
func (s *sequential) begin(id *int) (creates bool) {
	s.calls[id], creates = s.cache.Begin(modelKey)
	return creates
}

// end returns what the call gets. Within says that the create function of the
// same key makes it.
func (s *sequential) end(id *int, v int, how ending, within bool) string {
	f := s.calls[id]
	switch {
	case how != joined:
		v, err := how.shared(v)
		s.cache.End(modelKey, f, v, err)
	case !f.Over && within:
		return outcome(0, &oncecache.CycleError{Path: []any{key, key}})
	case !f.Over:
		return "must wait"
	}
	switch how {
	case inPanic:
		return fmt.Sprint("panics ", errRefused)
	case inGoexit:
		return "exits"
	}
	return outcome(f.Value, f.Err)
}

func (s *sequential) get() string { return found(s.cache.Get(modelKey)) }
