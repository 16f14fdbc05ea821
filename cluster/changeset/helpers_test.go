package changeset_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

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

// single is one server.
func single(t testing.TB) jetstream.JetStream {
	return natstest.Start(t, 1).JetStream()
}
