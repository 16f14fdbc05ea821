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
	"strconv"
	"sync"
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

// service is a process of the service, or of the supervisor of a cluster, and a client of
// each replica. A service that is no cluster is one replica.
type service struct {
	*api.Client // of the first replica
	replicas    []*api.Client
	process     *exec.Cmd
	read        chan struct{} // closed when its log has ended

	mu     sync.Mutex
	log    []string // its last lines
	urls   map[int]string
	pids   map[int]int
	listen map[int]int   // how often a replica has begun to listen
	news   chan struct{} // closed and replaced with each line
}

const keptLines = 50

// What the service and the supervisor write to their log.
var (
	listening = regexp.MustCompile(`msg=listening (?:replica=(\d+) )?url=(\S+)`)
	started   = regexp.MustCompile(`msg="a replica is started" replica=(\d+) pid=(\d+)`)
)

// start starts a service of so many replicas at free ports, and waits until all accept
// connections.
func start(ctx context.Context, binary string, replicas int, arguments ...string) (*service, error) {
	p := exec.CommandContext(ctx, binary, append([]string{"-addr", "127.0.0.1:0"}, arguments...)...)
	log, err := p.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := p.Start(); err != nil {
		return nil, err
	}
	s := &service{process: p, read: make(chan struct{}), urls: map[int]string{}, pids: map[int]int{}, listen: map[int]int{}, news: make(chan struct{})}
	go func() {
		defer close(s.read)
		for lines := bufio.NewScanner(log); lines.Scan(); {
			s.note(lines.Text())
		}
	}()
	for n := range replicas {
		if err := s.await(ctx, n, 1); err != nil {
			s.kill()
			return nil, err
		}
		s.replicas = append(s.replicas, api.NewClient(s.urls[n], &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 100}}))
	}
	s.Client = s.replicas[0]
	return s, nil
}

// note takes from a line of the log what there is to know.
func (s *service) note(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = append(s.log[max(0, len(s.log)-keptLines+1):], line)
	if m := listening.FindStringSubmatch(line); m != nil {
		n, _ := strconv.Atoi(m[1]) // none: 0
		s.urls[n] = m[2]
		s.listen[n]++
	} else if m := started.FindStringSubmatch(line); m != nil {
		n, _ := strconv.Atoi(m[1])
		s.pids[n], _ = strconv.Atoi(m[2])
	}
	close(s.news)
	s.news = make(chan struct{})
}

// await waits until a replica has begun to listen so often.
func (s *service) await(ctx context.Context, replica, times int) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		s.mu.Lock()
		done, news, log := s.listen[replica] >= times, s.news, s.log
		s.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-news:
		case <-s.read:
			return fmt.Errorf("the service has ended before it listened: %q", log)
		case <-ctx.Done():
			return fmt.Errorf("replica %d does not listen: %w: %q", replica, context.Cause(ctx), log)
		}
	}
}

// stop ends the service by SIGTERM, so that it finishes its requests.
func (s *service) stop() error {
	if err := s.process.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	<-s.read
	if err := s.process.Wait(); err != nil {
		return errors.Join(err, fmt.Errorf("%q", s.log))
	}
	return nil
}

// kill ends the service by SIGKILL.
func (s *service) kill() {
	s.process.Process.Kill()
	<-s.read
	s.process.Wait() // which says that it was killed
}

// killReplica ends a replica of a cluster by SIGKILL, and waits until the supervisor has
// brought it back.
func (s *service) killReplica(ctx context.Context, replica int) error {
	s.mu.Lock()
	pid, times := s.pids[replica], s.listen[replica]
	s.mu.Unlock()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		return err
	}
	return s.await(ctx, replica, times+1)
}
