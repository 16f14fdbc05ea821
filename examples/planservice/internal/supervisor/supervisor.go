// Package supervisor keeps child processes running, and ends them together.
//
// A child writes the lines Listening and Drained to its standard output. It ends when its
// standard input does, so that none outlives the supervisor, however that ends.
package supervisor

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// What a child says.
const (
	Listening = "listening" // it serves
	Drained   = "drained"   // after SIGTERM: it has finished what it had begun
)

// Config holds the settings.
type Config struct {
	Children int
	// Command returns a child's command, whose standard input and output the supervisor
	// takes.
	Command func(n int) *exec.Cmd
	Pause   time.Duration // after which a child that has ended is started again
	Grace   time.Duration // how long children may take for what they have begun, and then to end
	Log     *slog.Logger
	// Listening is called when all children have said so.
	Listening func()
}

// Run keeps the children running until ctx ends. Then all of them get SIGTERM, and when all
// have drained, all end: until then each may need the others. A child that ends before it
// has ever listened is an error, which ends the others.
func Run(ctx context.Context, c Config) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var running, listening, drained sync.WaitGroup
	listening.Add(c.Children)
	drained.Add(c.Children)
	all := make(chan struct{}) // closed when all have drained
	go func() { drained.Wait(); close(all) }()
	go func() { listening.Wait(); c.Listening() }()
	var failed error
	var once sync.Once
	for n := range c.Children {
		running.Go(func() {
			child := &child{Config: c, n: n, listening: sync.OnceFunc(listening.Done), drained: sync.OnceFunc(drained.Done), all: all}
			if err := child.keep(ctx); err != nil {
				once.Do(func() { failed = err })
				fail(err)
			}
			child.drained()
		})
	}
	running.Wait()
	return failed
}

// child is a child, and all processes that it has been.
type child struct {
	Config
	n                  int
	listening, drained func() // tell Run, once
	all                <-chan struct{}
}

// keep runs the child, again and again, until ctx ends.
func (c *child) keep(ctx context.Context) error {
	listened := false
	for ctx.Err() == nil {
		p, err := c.start()
		if err != nil {
			return err
		}
		select {
		case <-p.ended:
		case <-ctx.Done():
			c.end(p)
			return nil
		}
		listened = listened || p.listened
		if !listened {
			return fmt.Errorf("replica %d has ended before it listened: %v", c.n, p.err)
		}
		c.Log.Warn("a replica has ended", "replica", c.n, "pid", p.command.Process.Pid, "error", p.err)
		select {
		case <-time.After(c.Pause):
		case <-ctx.Done():
		}
	}
	return nil
}

// process is one process of a child.
type process struct {
	command  *exec.Cmd
	input    io.Closer
	drained  chan struct{} // closed when it says so
	ended    chan struct{} // closed when it has ended, after the fields below are set
	listened bool
	err      error
}

func (c *child) start() (*process, error) {
	command := c.Command(c.n)
	input, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	output, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, err
	}
	c.Log.Info("a replica is started", "replica", c.n, "pid", command.Process.Pid)
	p := &process{command: command, input: input, drained: make(chan struct{}), ended: make(chan struct{})}
	go func() {
		defer close(p.ended)
		drained := sync.OnceFunc(func() { close(p.drained) })
		for lines := bufio.NewScanner(output); lines.Scan(); {
			switch lines.Text() {
			case Listening:
				p.listened = true
				c.listening()
			case Drained:
				drained()
			}
		}
		p.err = command.Wait()
	}()
	return p, nil
}

// end ends a process: see Run.
func (c *child) end(p *process) {
	p.command.Process.Signal(syscall.SIGTERM)
	grace := time.After(c.Grace)
	select {
	case <-p.drained:
	case <-p.ended:
	case <-grace:
	}
	c.drained()
	select {
	case <-c.all:
	case <-p.ended:
	case <-grace:
	}
	p.input.Close()
	select {
	case <-p.ended:
		return
	case <-time.After(c.Grace):
	}
	c.Log.Error("a replica does not end", "replica", c.n)
	p.command.Process.Kill()
	<-p.ended
}
