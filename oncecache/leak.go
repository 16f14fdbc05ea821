package oncecache

import (
	"runtime"
	"runtime/debug"
)

// leak lets the garbage collector report a lease that was not released. It is reachable
// from the lease only.
type leak struct {
	cleanup runtime.Cleanup
	_       *byte // without a pointer in it, a 32-bit runtime might put it beside objects that stay
}

// track returns a leak that is reported unless it is released before it is
// unreachable, or nil without Config.OnLeak.
func (r *root[K]) track(k K) *leak {
	if r.onLeak == nil {
		return nil
	}
	type acquired struct {
		key   K
		stack []byte
	}
	l, report := new(leak), r.onLeak
	l.cleanup = runtime.AddCleanup(l, func(a acquired) { report(a.key, a.stack) }, acquired{k, debug.Stack()})
	return l
}

// released says that the lease has ended.
func (l *leak) released() {
	if l != nil {
		l.cleanup.Stop()
	}
}
