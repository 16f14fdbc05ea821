package breaker_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/cluster/breaker"
	"github.com/latchfree/latchfree/cluster/internal/natstest"
)

// What one replica finds out, the other knows.
func Example() {
	js, stop := natstest.Local() // jetstream.New of a connection
	defer stop()
	replica := func() *breaker.Group[string] {
		g, err := breaker.NewGroup(js, breaker.Config[string]{Stream: "breakers"})
		if err != nil {
			log.Fatal(err)
		}
		return g
	}
	a, b := replica(), replica()
	defer a.Close()
	defer b.Close()

	for range 5 {
		a.Do(context.Background(), "db-1", func(context.Context) error { return errors.New("connection refused") })
	}
	for !b.IsOpen("db-1") { // some milliseconds
		time.Sleep(time.Millisecond)
	}
	fmt.Println("b knows that db-1 is down:", b.IsOpen("db-1"))

	b.ForceOpen("db-2") // an operator, of all replicas
	for a.State("db-2") != atomicbreaker.ForcedOpen {
		time.Sleep(time.Millisecond)
	}
	fmt.Println("db-2 at a:", a.State("db-2"))
	// Output:
	// b knows that db-1 is down: true
	// db-2 at a: ForcedOpen
}
