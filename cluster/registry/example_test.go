package registry_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/latchfree/latchfree/cluster/registry"
)

func ExampleOpen() {
	type plan struct {
		Owner string
		Runs  int
	}
	use := func(ctx context.Context, js jetstream.JetStream) error {
		if _, err := js.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: "plans"}); err != nil {
			return err
		}
		plans, err := registry.Open(ctx, js, "plans", registry.Config[string, plan]{
			Indexes: map[string]func(string, plan) []string{
				"owner": func(_ string, p plan) []string { return []string{p.Owner} },
			},
		})
		if err != nil {
			return err
		}
		defer plans.Close(ctx)
		if _, err := plans.Create(ctx, "backup", plan{Owner: "ada"}); err != nil {
			return err
		}
		entry, err := plans.Update(ctx, "backup", func(p plan) (plan, error) {
			p.Runs++
			return p, nil
		})
		if err != nil {
			return err
		}
		for e := range plans.ByIndex("owner", "ada") {
			fmt.Println(e.Key, e.Value.Runs, e.Version == entry.Version)
		}
		return nil
	}
	withServer(use)
	// Output: backup 1 true
}

// withServer runs use with a server of its own.
func withServer(use func(context.Context, jetstream.JetStream) error) {
	if err := serve(use); err != nil {
		fmt.Println(err)
	}
}

func serve(use func(context.Context, jetstream.JetStream) error) error {
	dir, err := os.MkdirTemp("", "registry")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: dir, NoLog: true, NoSigs: true,
	})
	if err != nil {
		return err
	}
	s.Start()
	defer s.WaitForShutdown()
	defer s.Shutdown()
	if !s.ReadyForConnections(30 * time.Second) {
		return errors.New("no server")
	}
	nc, err := nats.Connect(s.ClientURL(), nats.MaxReconnects(-1))
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	return use(context.Background(), js)
}
