package registry_test

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/latchfree/latchfree/cluster/internal/natstest"
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
	js, stop := natstest.Local() // a server for this example
	defer stop()
	if err := use(context.Background(), js); err != nil {
		fmt.Println(err)
	}
	// Output: backup 1 true
}
