package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/latchfree/latchfree/examples/planservice/api"
)

// replayRegistry lets all clients create one action in two spellings at once, and then count
// in it, round after round.
func replayRegistry(ctx context.Context, l *storming) error {
	for round := 0; l.during.Err() == nil; round++ {
		name := fmt.Sprint("action-", round)
		var created atomic.Int64
		err := together(l.clients, func(i int) error {
			spelled := name
			if i%2 == 1 {
				spelled = strings.ToUpper(strings.ReplaceAll(name, "-", " "))
			}
			err := l.load.timed(func() error {
				_, err := l.CreateAction(ctx, api.Action{Name: spelled, Description: "0"})
				return err
			})
			switch {
			case err == nil:
				created.Add(1)
			case !api.IsCode(err, api.CodeExists):
				return err
			}
			return nil
		})
		if err != nil {
			return err
		}
		l.defects["creations beside another"] += int(created.Load() - 1)
		if err := countIn(ctx, l, name); err != nil {
			return err
		}
	}
	return nil
}

// countIn lets each client add one to the number in an action, by compare and set.
func countIn(ctx context.Context, l *storming, name string) error {
	err := together(l.clients, func(int) error {
		for {
			var was api.Stored[api.Action]
			err := l.load.timed(func() (err error) { was, err = l.Action(ctx, name); return err })
			if err != nil {
				return err
			}
			n, err := strconv.Atoi(was.Value.Description)
			if err != nil {
				return err
			}
			next := was.Value
			next.Description = strconv.Itoa(n + 1)
			err = l.load.timed(func() error { _, err := l.PutAction(ctx, name, was.Version, next); return err })
			if !api.IsCode(err, api.CodeConflict) {
				return err
			}
		}
	})
	if api.IsCode(err, api.CodeNotFound) { // normalised in one method, and not in another
		l.defects["creations beside another"]++
		return nil
	}
	if err != nil {
		return err
	}
	end, err := l.Action(ctx, name)
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(end.Value.Description)
	if err != nil || n > l.clients {
		return errors.Join(err, fmt.Errorf("%d clients have counted to %s", l.clients, end.Value.Description))
	}
	l.defects["updates lost"] += l.clients - n
	return nil
}
