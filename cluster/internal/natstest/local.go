package natstest

import (
	"log"
	"os"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Local starts one server for an example, and connects to it. Stop ends both.
func Local() (js jetstream.JetStream, stop func()) {
	dir := must(os.MkdirTemp("", "natstest"))
	s := must(server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: dir, NoLog: true, NoSigs: true,
	}))
	s.Start()
	if !s.ReadyForConnections(patience) {
		log.Fatal("natstest: the server accepts no connections")
	}
	nc := must(nats.Connect(s.ClientURL()))
	return must(jetstream.New(nc)), func() {
		nc.Close()
		s.Shutdown()
		s.WaitForShutdown()
		os.RemoveAll(dir)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}

// Long reports whether the tests may take minutes: CLUSTER_LONG is set.
func Long() bool { return os.Getenv("CLUSTER_LONG") != "" }

// NeedsLong skips a test, because of why, unless Long.
func NeedsLong(t testing.TB, why string) {
	t.Helper()
	if !Long() {
		t.Skipf("%s: CLUSTER_LONG is not set, see make cluster-storm", why)
	}
}
