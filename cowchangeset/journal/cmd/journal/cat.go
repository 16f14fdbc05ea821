package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"

	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/cowchangeset/journal/reader"
)

// An event is an Event in JSON.
type event struct {
	Line     int     `json:"line"`
	Kind     string  `json:"kind"`
	ID       string  `json:"id,omitempty"`
	Ordinal  uint64  `json:"ordinal,omitempty"`
	Previous string  `json:"previous,omitempty"`
	Entries  []entry `json:"entries,omitempty"`
	Len      *int    `json:"len,omitempty"`  // of a seal
	Last     *uint64 `json:"last,omitempty"` // of a seal
	Reason   *string `json:"reason,omitempty"`
	Next     uint64  `json:"next,omitempty"`
	Before   uint64  `json:"before,omitempty"`
	Segment  uint64  `json:"segment,omitempty"`
	Journal  string  `json:"journal,omitempty"`
	Hash     string  `json:"hash"`
}

type entry struct {
	Seq   uint64          `json:"seq"`
	Value json.RawMessage `json:"value"`
}

func cat(ctx context.Context, args []string, stdout io.Writer) error {
	flags := newFlags("cat")
	id := flags.String("id", "", "")
	after := flags.Int("after", 0, "")
	follow := flags.Bool("f", false, "")
	path, err := parse(flags, args)
	if err != nil {
		return err
	}
	given := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	if given["id"] && (*follow || given["after"]) || *after < 0 {
		return fmt.Errorf("%w: these flags do not go together", errUsage)
	}
	r, err := open(path)
	if err != nil {
		return err
	}
	buf := bufio.NewWriter(stdout)
	out := json.NewEncoder(buf)
	out.SetEscapeHTML(false)
	if given["id"] {
		s, err := r.Changeset(ctx, *id)
		for _, e := range entriesOf(s.Entries) {
			err = errors.Join(err, out.Encode(e))
		}
		return errors.Join(err, buf.Flush())
	}
	events := r.Events
	if *follow {
		events = r.Follow
	}
	for e, err := range events(ctx, *after) {
		if err == nil {
			err = out.Encode(eventOf(e))
		}
		if err == nil && *follow {
			err = buf.Flush()
		}
		if err != nil {
			err = errors.Join(err, buf.Flush())
			if *follow && ctx.Err() != nil {
				return nil
			}
			return err
		}
	}
	return buf.Flush()
}

func eventOf(e reader.Event[json.RawMessage]) event {
	out := event{
		Line: e.Line, Kind: e.Kind.String(), ID: e.ChangesetID, Ordinal: e.Ordinal, Previous: e.Previous,
		Entries: entriesOf(e.Entries), Next: e.Next, Before: e.Before, Segment: e.Segment, Journal: e.Journal, Hash: e.Hash,
	}
	switch e.Kind {
	case reader.Sealed:
		out.Len, out.Last = &e.Manifest.Len, &e.Manifest.Last
	case reader.Aborted, reader.Lost:
		out.Reason = &e.Reason
	}
	return out
}

func entriesOf(all []cowchangeset.Entry[json.RawMessage]) (out []entry) {
	for _, e := range all {
		out = append(out, entry{e.Seq, e.Value})
	}
	return out
}
