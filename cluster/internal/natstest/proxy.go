package natstest

import (
	"net"
	"sync"
	"time"
)

// proxy forwards the connections that it accepts to a target, which may change.
type proxy struct {
	listener net.Listener
	target   func() string // an address, or "" while the target is down

	mu      sync.Mutex
	changed *sync.Cond // stalled or closed
	conns   map[net.Conn]struct{}
	stalled bool
	closed  bool
	delay   time.Duration
}

func newProxy(target func() string) (*proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{listener: l, target: target, conns: make(map[net.Conn]struct{})}
	p.changed = sync.NewCond(&p.mu)
	go p.serve()
	return p, nil
}

func (p *proxy) addr() string { return p.listener.Addr().String() }

func (p *proxy) serve() {
	for {
		c, err := p.listener.Accept()
		if err != nil {
			return
		}
		go p.connect(c)
	}
}

// connect forwards both directions of c until one of its ends closes it. While the proxy
// stalls, it does not reach the target: c is open and silent.
func (p *proxy) connect(c net.Conn) {
	if !p.add(c) {
		return
	}
	defer p.drop(c)
	if !p.wait() {
		return
	}
	addr := p.target()
	if addr == "" {
		return
	}
	to, err := net.Dial("tcp", addr)
	if err != nil || !p.add(to) {
		return
	}
	defer p.drop(to)
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.forward(c, to)
	}()
	p.forward(to, c)
	<-done
}

// forward copies what comes from one connection to the other, and closes both in the end.
func (p *proxy) forward(from, to net.Conn) {
	defer p.drop(from)
	defer p.drop(to)
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			if !p.wait() {
				return
			}
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// wait returns when the proxy forwards, after its delay, and reports whether it is open.
func (p *proxy) wait() bool {
	p.mu.Lock()
	delay := p.delay
	p.mu.Unlock()
	time.Sleep(delay)
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.stalled && !p.closed {
		p.changed.Wait()
	}
	return !p.closed
}

// add reports whether c belongs to an open proxy, and closes it otherwise.
func (p *proxy) add(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		c.Close()
		return false
	}
	p.conns[c] = struct{}{}
	return true
}

func (p *proxy) drop(c net.Conn) {
	c.Close()
	p.mu.Lock()
	delete(p.conns, c)
	p.mu.Unlock()
}

// stall holds back all that is under way, and all that comes, until stall(false).
func (p *proxy) stall(stalled bool) {
	p.mu.Lock()
	p.stalled = stalled
	p.mu.Unlock()
	p.changed.Broadcast()
}

// slow makes each read of up to 64 KiB wait before it goes on.
func (p *proxy) slow(delay time.Duration) {
	p.mu.Lock()
	p.delay = delay
	p.mu.Unlock()
}

// reset closes the connections; the proxy accepts new ones.
func (p *proxy) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.Close()
	}
}

func (p *proxy) close() {
	p.listener.Close()
	p.mu.Lock()
	p.closed = true
	for c := range p.conns {
		c.Close()
	}
	p.mu.Unlock()
	p.changed.Broadcast()
}
