package changeset_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/cluster/changeset"
	"github.com/latchfree/latchfree/cluster/internal/natstest"
	"github.com/latchfree/latchfree/cowchangeset"
)

var background = context.Background()

var noContext context.Context

type (
	header = cowchangeset.Header
	entry  = cowchangeset.Entry[string]
)

var streams atomic.Int64

// stream makes a stream that keeps a trail.
func stream(t testing.TB, js jetstream.JetStream, replicas int) string {
	t.Helper()
	name := fmt.Sprint("TRAIL", streams.Add(1))
	_, err := js.CreateStream(background, changeset.StreamConfig(name, replicas))
	require.NoError(t, err)
	return name
}

// open opens a Store of strings.
func open(t testing.TB, js jetstream.JetStream, stream string) *changeset.Store[string] {
	t.Helper()
	s, err := changeset.Open(background, js, changeset.Options[string]{Stream: stream})
	require.NoError(t, err)
	return s
}

// inTime returns the error of a call that goes on until its context ends, which is after d,
// or later on a machine that is so busy that the error is not yet the one wanted.
func inTime(d time.Duration, want error, call func(context.Context) error) error {
	for ; ; d *= 2 {
		ctx, cancel := context.WithTimeout(background, d)
		err := call(ctx)
		cancel()
		if errors.Is(err, want) || d > 10*time.Second {
			return err
		}
	}
}

// single is one server.
func single(t testing.TB) jetstream.JetStream {
	return natstest.Start(t, 1).JetStream()
}
