package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/latchfree/latchfree/examples/planservice/api"
)

// replayRegistry lets all clients create one action and one strategy, in two spellings at
// once, and then count in the action, round after round.
func replayRegistry(ctx context.Context, l *storming) error {
	for round := 0; l.during.Err() == nil; round++ {
		name := fmt.Sprint("action-", round)
		there, err := createOne(l, name, func(i int, spelled string) error {
			_, err := l.at(i).CreateAction(ctx, api.Action{Name: spelled, Description: "0"})
			return err
		})
		if err != nil {
			return err
		}
		_, err = createOne(l, fmt.Sprint("strategy-", round), func(i int, spelled string) error {
			_, err := l.at(i).CreateStrategy(ctx, api.Strategy{Name: spelled, URL: fmt.Sprint("http://127.0.0.1/", i)})
			return err
		})
		if err == nil && there {
			err = countIn(ctx, l, name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// createOne lets all clients create a name, in two spellings. It returns whether one of them
// was told that it has.
func createOne(l *storming, name string, create func(client int, spelled string) error) (there bool, err error) {
	var created, lost atomic.Int64
	err = together(l.clients, func(i int) error {
		spelled := name
		if i%2 == 1 {
			spelled = strings.ToUpper(strings.ReplaceAll(name, "-", " "))
		}
		err := l.timed(func() error { return create(i, spelled) })
		switch {
		case err == nil:
			created.Add(1)
		case l.isLost(err):
			lost.Add(1)
		case !api.IsCode(err, api.CodeExists):
			return err
		}
		return nil
	})
	if err == nil && created.Load() == 0 && lost.Load() == 0 {
		err = fmt.Errorf("nobody could create %s", name)
	}
	l.defect("creations beside another", int(max(0, created.Load()-1)))
	return created.Load() > 0, err
}

// countIn lets each client add one to the number in an action, by compare and set.
func countIn(ctx context.Context, l *storming, name string) error {
	var counted, lost atomic.Int64
	err := together(l.clients, func(i int) error {
		for began := time.Now(); ; {
			var was api.Stored[api.Action]
			err := l.timed(func() (err error) { was, err = l.at(i).Action(ctx, name); return err })
			switch {
			case l.isLost(err): // it was not sent
				return nil
			case l.clustered() && api.IsCode(err, api.CodeNotFound) && time.Since(began) < patience:
				time.Sleep(time.Millisecond) // this replica has not heard of it yet
				continue
			case err != nil:
				return err
			}
			n, err := strconv.Atoi(was.Value.Description)
			if err != nil {
				return err
			}
			next := was.Value
			next.Description = strconv.Itoa(n + 1)
			err = l.timed(func() error { _, err := l.at(i).PutAction(ctx, name, was.Version, next); return err })
			switch {
			case err == nil:
				counted.Add(1)
				return nil
			case l.isLost(err):
				lost.Add(1)
				return nil
			case !api.IsCode(err, api.CodeConflict):
				return err
			}
		}
	})
	if api.IsCode(err, api.CodeNotFound) { // normalised in one method, and not in another
		l.defect("creations beside another", 1)
		return nil
	}
	if err != nil {
		return err
	}
	return l.each(func(replica int) error {
		n := int64(0)
		for began := time.Now(); ; time.Sleep(time.Millisecond) {
			end, err := l.at(replica).Action(ctx, name)
			if l.isLost(err) {
				return nil
			}
			if err == nil {
				n, err = strconv.ParseInt(end.Value.Description, 10, 64)
			}
			late := l.clustered() && time.Since(began) < patience
			switch {
			case err != nil && !(late && api.IsCode(err, api.CodeNotFound)):
				return err
			case n < counted.Load() && late: // this replica has not heard of all yet
				continue
			case n > counted.Load()+lost.Load():
				return errors.Join(err, fmt.Errorf("%d clients, or %d more, have counted to %d", counted.Load(), lost.Load(), n))
			}
			l.defect("updates lost", int(max(0, counted.Load()-n)))
			return nil
		}
	})
}

// patience is how long a replica may take to hear of what others have been told. An election
// takes up to 9 seconds of it, and may fail.
const patience = 30 * time.Second
