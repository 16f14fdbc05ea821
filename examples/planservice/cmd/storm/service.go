package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"time"

	"github.com/latchfree/latchfree/examples/planservice/api"
)

// module is the package of the service.
const module = "github.com/latchfree/latchfree/examples/planservice"

// build builds the service, with the flags of go build.
func build(ctx context.Context, flags ...string) (binary string, remove func(), err error) {
	dir, err := os.MkdirTemp("", "planservice")
	if err != nil {
		return "", nil, err
	}
	remove = func() { os.RemoveAll(dir) }
	binary = filepath.Join(dir, "planservice")
	out, err := exec.CommandContext(ctx, "go", append(append([]string{"build"}, flags...), "-o", binary, module)...).CombinedOutput()
	if err != nil {
		remove()
		return "", nil, fmt.Errorf("go build: %w\n%s", err, out)
	}
	return binary, remove, nil
}

// service is a process of the service, and a client of it.
type service struct {
	*api.Client
	process *exec.Cmd
	read    chan struct{} // closed when its log has ended
}

var listening = regexp.MustCompile(`msg=listening url=(\S+)`)

// start starts the service at a free port, and waits until it accepts connections.
func start(ctx context.Context, binary string, arguments ...string) (*service, error) {
	p := exec.CommandContext(ctx, binary, append([]string{"-addr", "127.0.0.1:0"}, arguments...)...)
	log, err := p.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := p.Start(); err != nil {
		return nil, err
	}
	s := &service{process: p, read: make(chan struct{})}
	url := make(chan string, 1)
	go func() {
		defer close(s.read)
		defer close(url)
		for lines := bufio.NewScanner(log); lines.Scan(); {
			if m := listening.FindStringSubmatch(lines.Text()); m != nil {
				url <- m[1]
			}
		}
	}()
	select {
	case base, ok := <-url:
		if !ok {
			return nil, errors.Join(errors.New("the service has ended before it listened"), p.Wait())
		}
		s.Client = api.NewClient(base, &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 100}})
		return s, nil
	case <-time.After(30 * time.Second):
		s.kill()
		return nil, errors.New("the service does not listen")
	}
}

// stop ends the service by SIGTERM, so that it finishes its requests.
func (s *service) stop() error {
	if err := s.process.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	<-s.read
	return s.process.Wait()
}

// kill ends the service by SIGKILL.
func (s *service) kill() {
	s.process.Process.Kill()
	<-s.read
	s.process.Wait() // which says that it was killed
}
