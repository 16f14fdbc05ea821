// Command planservice runs plans. See README.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/latchfree/latchfree/examples/planservice/api"
	"github.com/latchfree/latchfree/examples/planservice/internal/demo"
	"github.com/latchfree/latchfree/examples/planservice/internal/service"
	"github.com/latchfree/latchfree/examples/planservice/internal/web"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stderr, func(net.Addr) {})
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "planservice:", err)
		os.Exit(1)
	}
}

// options are the settings of the command.
type options struct {
	address string
	grace   time.Duration
	service service.Config
	cluster bool
	data    string
	replica int // -1: none
	demo    bool
	peers   string
}

func parse(arguments []string, output io.Writer) (o options, err error) {
	flags := flag.NewFlagSet("planservice", flag.ContinueOnError)
	flags.SetOutput(output)
	c := &o.service
	file := flags.String("db", "", "SQLite `file` for the changes (in memory if empty)")
	flags.StringVar(&o.address, "addr", "127.0.0.1:8080", "`address` to listen at")
	flags.StringVar(&c.Journal, "journal", "", "`folder` for the audit trail, which exists or is made (in memory if empty)")
	flags.BoolVar(&c.NoSync, "nosync", false, "do not fsync the journal: a crash of the machine may lose its end")
	flags.StringVar(&c.Store, "store", "latchfree", "latchfree, naive or locked")
	flags.BoolVar(&o.cluster, "cluster", false, "run three replicas that agree, at -addr and the two ports above")
	flags.BoolVar(&o.demo, "demo", false, "fill the service, and go on changing it a little, to see the page")
	flags.StringVar(&o.data, "data", "", "`folder` for what the replicas of -cluster keep (a temporary one if empty)")
	flags.IntVar(&o.replica, "replica", -1, "used by -cluster")
	flags.StringVar(&o.peers, "peers", "", "used by -cluster")
	flags.DurationVar(&c.Pause, "pause", 0, "how long naive stops between its steps; it yields if 0")
	flags.IntVar(&c.Workers, "workers", 16, "workers that call strategies")
	flags.IntVar(&c.Queue, "queue", 1024, "tasks that wait for a worker at most")
	flags.IntVar(&c.Threshold, "threshold", 3, "failures in a row that open a breaker")
	flags.DurationVar(&c.OpenTimeout, "open-timeout", 5*time.Second, "how long a breaker stays open")
	flags.DurationVar(&c.StrategyTimeout, "timeout", 5*time.Second, "how long a strategy's call may take")
	flags.DurationVar(&c.EngineIdle, "engine-idle", time.Minute, "after which an unused engine of a file is closed")
	flags.IntVar(&c.MemoryDatabases, "memory-databases", 100, "databases that clients may open in memory at most")
	flags.DurationVar(&c.SlowOpen, "slow-open", 0, "how long a database memory:slow-NAME takes to open, to try what that does")
	flags.DurationVar(&c.SlowApply, "slow-apply", 0, "how long an apply to it takes")
	flags.DurationVar(&o.grace, "grace", 10*time.Second, "how long requests may take after SIGTERM")
	flags.Func("strategy", "`name=url` of a strategy; may be repeated", func(text string) error {
		name, url, ok := strings.Cut(text, "=")
		if !ok {
			return errors.New("want name=url")
		}
		c.Strategies = append(c.Strategies, api.Strategy{Name: name, URL: url})
		return nil
	})
	if err := flags.Parse(arguments); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unknown argument %q", flags.Arg(0))
	}
	if *file != "" {
		c.Database = "file:" + *file
	}
	switch {
	case o.cluster && (c.Store != "latchfree" || c.Journal != ""):
		return o, errors.New("-cluster has a store and journals of its own: see -data")
	case o.replica >= len(strings.Split(o.peers, ",")) || o.replica >= 0 && (o.peers == "" || o.data == ""):
		return o, errors.New("-replica and -peers are used by -cluster")
	case !o.cluster && o.replica < 0 && o.data != "":
		return o, errors.New("-data belongs to -cluster: see -journal and -db")
	}
	return o, nil
}

// run serves until ctx ends, and then finishes what has begun. It calls listening when
// connections are accepted.
func run(ctx context.Context, arguments []string, output io.Writer, listening func(net.Addr)) error {
	o, err := parse(arguments, output)
	if err != nil {
		return err
	}
	if o.cluster {
		return runCluster(ctx, o, arguments, output)
	}
	log := slog.New(slog.NewTextHandler(output, nil))
	if o.replica >= 0 {
		signal.Ignore(syscall.SIGPIPE) // the supervisor may have ended
		log = log.With("replica", o.replica)
		p := newParent()
		p.join(&o)
		var stop context.CancelFunc
		ctx, stop = context.WithCancel(ctx)
		defer stop()
		go func() { <-p.gone; stop() }()
		then := listening
		listening = func(a net.Addr) { p.listening(); then(a) }
	}
	o.service.Log = log
	s, err := service.New(ctx, o.service)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", o.address)
	if err != nil {
		return errors.Join(err, s.Close(context.Background()))
	}
	stop := make(chan struct{})
	server := &http.Server{
		Handler:           web.New(s, log, stop),
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	go s.Sample(stop)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	log.Info("listening", "url", "http://"+listener.Addr().String(), "store", o.service.Store)
	listening(listener.Addr())
	demoing, endDemo := context.WithCancel(ctx)
	defer endDemo()
	var demonstration sync.WaitGroup
	if o.demo && o.replica <= 0 { // the others show what the first one has got
		demonstration.Go(func() {
			if err := demo.Run(demoing, demo.Config{URL: "http://" + listener.Addr().String(), Log: log}); err != nil {
				log.Error("the demo has ended", "error", err)
			}
		})
	}
	select {
	case err = <-served:
	case <-ctx.Done():
		log.Info("shutting down", "grace", o.grace)
	}
	endDemo()
	demonstration.Wait()
	s.Stop()
	close(stop)
	grace, cancel := context.WithTimeout(context.Background(), o.grace)
	defer cancel()
	if shut := server.Shutdown(grace); shut != nil {
		err = errors.Join(err, shut, server.Close())
	}
	err = errors.Join(err, s.Close(grace))
	log.Info("stopped", "error", err)
	return err
}
