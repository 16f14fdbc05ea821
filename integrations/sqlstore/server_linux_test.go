package sqlstore_test

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// server is a PostgreSQL server of this test alone. It starts when the first test asks
// for it, and ends with the process, however that ends.
var server struct {
	once   sync.Once
	dsn    string
	reason string // why there is none
	err    error
	stop   func()
}

// startServer returns the address of the server, or the reason why there is none, or
// why it does not start.
func startServer() (dsn, reason string, err error) {
	server.once.Do(func() {
		initdb, err := binary("initdb")
		if err == nil {
			_, err = binary("postgres")
		}
		if err != nil {
			server.reason = "no PostgreSQL server: " + err.Error() + "; set " + postgresVariable + " to the address of one"
			return
		}
		server.err = start(filepath.Dir(initdb))
	})
	return server.dsn, server.reason, server.err
}

func stopServer() {
	if server.stop != nil {
		server.stop()
	}
}

// binary finds a program of PostgreSQL that has its siblings beside it.
func binary(name string) (string, error) {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	if len(found) > 0 {
		return found[len(found)-1], nil
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(path)
}

// start makes a cluster in a directory of its own, and starts a server on it.
func start(bin string) error {
	dir, err := os.MkdirTemp("", "sqlstore")
	if err != nil {
		return err
	}
	var credential *syscall.Credential
	if os.Getuid() == 0 { // as which the server refuses to run
		if credential, err = somebody(); err == nil {
			err = os.Chown(dir, int(credential.Uid), int(credential.Gid))
		}
	}
	if err != nil {
		os.RemoveAll(dir)
		return err
	}
	data := filepath.Join(dir, "data")
	initdb := exec.Command(filepath.Join(bin, "initdb"), "-D", data, "-U", "test", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync", "--no-instructions")
	initdb.Dir, initdb.SysProcAttr = dir, &syscall.SysProcAttr{Credential: credential}
	if out, err := initdb.CombinedOutput(); err != nil {
		os.RemoveAll(dir)
		return fmt.Errorf("initdb: %w: %s", err, out)
	}
	port, err := freePort()
	if err != nil {
		os.RemoveAll(dir)
		return err
	}
	fsync := "off"
	if f := flagValue("test.bench"); f != "" {
		fsync = "on" // or benchmarks would measure something else
	}
	var output bytes.Buffer
	cmd := exec.Command(filepath.Join(bin, "postgres"), "-D", data, "-h", "127.0.0.1", "-p", port, "-k", dir,
		"-c", "fsync="+fsync, "-c", "shared_buffers=32MB", "-c", "max_connections=50")
	cmd.Dir, cmd.Stderr, cmd.Stdout = dir, &output, &output
	// SIGQUIT is an immediate shutdown. The signal comes at the end of the thread that
	// starts the process: so the goroutine below keeps its thread.
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: credential, Pdeathsig: syscall.SIGQUIT}
	started, ended := make(chan error), make(chan struct{})
	go func() {
		runtime.LockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			cmd.Wait()
		}
		close(ended)
	}()
	if err := <-started; err != nil {
		os.RemoveAll(dir)
		return err
	}
	server.stop = func() {
		cmd.Process.Signal(syscall.SIGQUIT)
		<-ended
		os.RemoveAll(dir)
	}
	server.dsn = "postgres://test@127.0.0.1:" + port + "/postgres?sslmode=disable"
	for range 600 {
		select {
		case <-ended:
			return fmt.Errorf("postgres has ended: %s", &output)
		case <-time.After(50 * time.Millisecond):
		}
		if ping(server.dsn) == nil {
			return nil
		}
	}
	return fmt.Errorf("postgres does not answer at %s", server.dsn)
}

// somebody returns a user other than root.
func somebody() (*syscall.Credential, error) {
	var failed error
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			failed = err
			continue
		}
		uid, err := strconv.ParseUint(u.Uid, 10, 32)
		if err != nil {
			return nil, err
		}
		gid, err := strconv.ParseUint(u.Gid, 10, 32)
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, err
	}
	return nil, failed
}

// freePort returns a port that was free a moment ago.
func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, err
}
