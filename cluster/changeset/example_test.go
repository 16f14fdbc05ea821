package changeset_test

import (
	"context"
	"fmt"
	"log"

	"github.com/latchfree/latchfree/cluster/changeset"
	"github.com/latchfree/latchfree/cluster/internal/natstest"
	"github.com/latchfree/latchfree/cowchangeset"
)

// One replica records, another one follows, and takes over.
func Example() {
	ctx := context.Background()
	js, stop := natstest.Local()
	defer stop()

	type Change struct {
		Item string
		N    int
	}
	if _, err := js.CreateStream(ctx, changeset.StreamConfig("CHANGES", 1)); err != nil { // 3 in a cluster
		log.Fatal(err)
	}
	options := changeset.Options[Change]{Stream: "CHANGES"}
	resume := func() (*cowchangeset.Tracker[Change], error) {
		store, err := changeset.Open(ctx, js, options)
		if err != nil {
			return nil, err
		}
		return cowchangeset.Resume(ctx, cowchangeset.Config[Change]{Store: store})
	}

	first, err := resume()
	if err != nil {
		log.Fatal(err)
	}
	first.Start(ctx)
	first.Record(Change{"bolts", 100}) // committed when it returns

	reader, err := changeset.Open(ctx, js, options)
	if err != nil {
		log.Fatal(err)
	}
	for event, err := range reader.Follow(ctx, changeset.Position{}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(event.Kind, event.Entries)
		if event.Kind == changeset.Appended {
			break // a follower would go on
		}
	}

	second, err := resume()
	if err != nil {
		log.Fatal(err)
	}
	second.Record(Change{"nuts", 200}) // into the same changeset
	for _, change := range second.Trail().All() {
		fmt.Println(change)
	}
	_, err = first.Record(Change{"late", 1})
	fmt.Println(err != nil)
	// Output:
	// claimed []
	// started []
	// appended [{0 {bolts 100}}]
	// {bolts 100}
	// {nuts 200}
	// true
}
