// Package pool runs functions on a fixed number of goroutines.
package pool

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

var (
	ErrBusy   = errors.New("pool: the queue is full")
	ErrClosed = errors.New("pool: closed")
)

// Pool is a fixed number of workers with a bounded queue.
type Pool struct {
	workers int
	tasks   chan func()
	// free is how many more tasks are accepted, or negative when the pool is closed. A
	// task holds a place from its acceptance until it has ended.
	free    atomic.Int64
	limit   int64
	busy    atomic.Int64
	ended   sync.WaitGroup // workers
	closing sync.Once
	idle    chan struct{} // closed when the pool is closed and the last task has ended
}

const closed = -1 << 40

// New starts workers. Beside the tasks that they run, queue tasks may wait.
func New(workers, queue int) (*Pool, error) {
	if workers < 1 || queue < 0 {
		return nil, fmt.Errorf("pool: %d workers with a queue of %d", workers, queue)
	}
	p := &Pool{workers: workers, limit: int64(workers + queue), tasks: make(chan func(), workers+queue), idle: make(chan struct{})}
	p.free.Store(p.limit)
	for range workers {
		p.ended.Go(p.work)
	}
	return p, nil
}

// Go queues all tasks, or none: then it returns ErrBusy or ErrClosed.
func (p *Pool) Go(tasks ...func()) error {
	n := int64(len(tasks))
	for {
		free := p.free.Load()
		switch {
		case free < 0:
			return ErrClosed
		case free < n:
			return ErrBusy
		}
		if p.free.CompareAndSwap(free, free-n) {
			break
		}
	}
	for _, t := range tasks {
		p.tasks <- t // never waits: there is room for all that were accepted
	}
	return nil
}

// Workers returns the number of workers.
func (p *Pool) Workers() int { return p.workers }

// Busy returns how many tasks run.
func (p *Pool) Busy() int { return int(p.busy.Load()) }

// Queued returns how many tasks wait.
func (p *Pool) Queued() int { return len(p.tasks) }

// Close accepts no more tasks and waits, until ctx ends, for those that were accepted.
func (p *Pool) Close(ctx context.Context) error {
	p.closing.Do(func() {
		if p.free.Add(closed) == p.limit+closed {
			close(p.idle)
		}
		go func() {
			<-p.idle
			close(p.tasks)
		}()
	})
	done := make(chan struct{})
	go func() { p.ended.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (p *Pool) work() {
	for t := range p.tasks {
		p.run(t)
	}
}

// run gives the task's place back, however the task ends. A task that calls
// runtime.Goexit takes the worker with it, and another one starts.
func (p *Pool) run(task func()) {
	p.busy.Add(1)
	returned := false
	defer func() {
		if r := recover(); r != nil {
			slog.Error("a task panicked", "panic", r, "stack", string(debug.Stack()))
		} else if !returned {
			p.ended.Go(p.work)
		}
		p.busy.Add(-1)
		if p.free.Add(1) == p.limit+closed {
			close(p.idle)
		}
	}()
	task()
	returned = true
}
