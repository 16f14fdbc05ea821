package atomics

// Install stores fresh if p is nil, and returns what p holds then: fresh, or what
// another goroutine has installed. It is for pointers that stay once they are set.
//
//	if x := p.Load(); x != nil {
//		return x
//	}
//	return p.Install(new(X))
func (p *Pointer[T]) Install(fresh *T) *T {
	if p.CompareAndSwap(nil, fresh) {
		return fresh
	}
	return p.Load()
}
