package latchgrpc_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/atomicbreaker/retrybudget"
	latchgrpc "github.com/latchfree/latchfree/integrations/grpc"
)

// try makes a call whose attempts end with these errors, the last of them for ever.
func try(ctx context.Context, r *latchgrpc.Retries, pushback []string, errs ...error) (attempts int, err error) {
	err = r.UnaryClient()(ctx, "/m", nil, nil, nil,
		func(_ context.Context, _ string, _, _ any, _ *grpc.ClientConn, opts ...grpc.CallOption) error {
			*opts[len(opts)-1].(grpc.TrailerCallOption).TrailerAddr = metadata.MD{"grpc-retry-pushback-ms": pushback}
			attempts++
			return errs[min(attempts, len(errs))-1]
		})
	return attempts, err
}

func budget(n int) *retrybudget.Budget {
	return retrybudget.MustNew(retrybudget.Config{Capacity: n, Ratio: 1, MinPerSecond: -1})
}

func TestRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := budget(3)
		r := latchgrpc.MustNewRetries(latchgrpc.RetriesConfig{Budget: b, BaseDelay: time.Second, MaxDelay: 1500 * time.Millisecond})
		ctx := context.Background()
		is := func(attempts, left int, want error) func(int, error) {
			return func(n int, err error) {
				t.Helper()
				assert.Equal(t, attempts, n)
				assert.Equal(t, want, err)
				assert.Equal(t, left, b.Available())
			}
		}
		is(2, 3, nil)(try(ctx, r, nil, errDown, nil)) // a success earns what it took
		is(1, 3, errAbsent)(try(ctx, r, nil, errAbsent))
		begin := time.Now()
		is(3, 1, errDown)(try(ctx, r, nil, errDown))
		assert.LessOrEqual(t, time.Since(begin), 2500*time.Millisecond+2)
		assert.Positive(t, time.Since(begin))
		is(2, 0, errDown)(try(ctx, r, nil, errDown))
		begin = time.Now()
		is(1, 0, errDown)(try(ctx, r, nil, errDown)) // nothing left
		assert.Zero(t, time.Since(begin), "no wait without budget")
		is(1, 1, errAbsent)(try(ctx, r, nil, errAbsent)) // the server works
		rejected := errors.Join(atomicbreaker.ErrOpen, errDown)
		is(1, 1, rejected)(try(ctx, r, nil, rejected))
	})
}

func TestPushback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := latchgrpc.MustNewRetries(latchgrpc.RetriesConfig{})
		begin := time.Now()
		n, err := try(context.Background(), r, []string{"7000"}, errDown, nil)
		assert.NoError(t, err)
		assert.Equal(t, 2, n)
		assert.Equal(t, 7*time.Second, time.Since(begin))
		for _, no := range [][]string{{"-1"}, {"soon"}, {""}, {"1", "2"}, {"99999999999"}} {
			n, err = try(context.Background(), r, no, errDown)
			assert.Equal(t, errDown, err)
			assert.Equal(t, 1, n, no)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		begin = time.Now()
		n, err = try(ctx, r, []string{"1000"}, errDown) // would be too late
		assert.Equal(t, errDown, err)
		assert.Equal(t, 1, n)
		assert.Zero(t, time.Since(begin))
	})
}

func TestCancelledWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := budget(3)
		r := latchgrpc.MustNewRetries(latchgrpc.RetriesConfig{Budget: b})
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(time.Second, cancel)
		n, err := try(ctx, r, []string{"5000"}, errDown)
		assert.Equal(t, codes.Canceled, status.Code(err))
		assert.Equal(t, 1, n)
		assert.Equal(t, 3, b.Available(), "no retry was made")
	})
}

// TestPushbackOverTheWire: the trailer of a failed call arrives.
func TestPushbackOverTheWire(t *testing.T) {
	overBoth(t, func(t *testing.T, n network) {
		calls := 0
		e := &echo{get: func(ctx context.Context, s string) (string, error) {
			if calls++; calls == 2 {
				grpc.SetTrailer(ctx, metadata.Pairs("grpc-retry-pushback-ms", "-1"))
			}
			return s, errDown
		}}
		r := latchgrpc.MustNewRetries(latchgrpc.RetriesConfig{MaxAttempts: 9, BaseDelay: 1})
		conn := n.serve(t, e, nil, grpc.WithUnaryInterceptor(r.UnaryClient()))
		_, err := get(soon(t), conn, "a")
		assert.Equal(t, codes.Unavailable, status.Code(err))
		assert.Equal(t, 2, calls)
	})
}

func TestRetriesConfig(t *testing.T) {
	for text, c := range map[string]latchgrpc.RetriesConfig{
		"latchgrpc: RetriesConfig.Codes [OK]: must be codes of gRPC without OK and Canceled":       {Codes: []codes.Code{codes.OK}},
		"latchgrpc: RetriesConfig.Codes [Code(17)]: must be codes of gRPC without OK and Canceled": {Codes: []codes.Code{17}},
		"latchgrpc: RetriesConfig.MaxAttempts -1: must not be negative":                            {MaxAttempts: -1},
		"latchgrpc: RetriesConfig.BaseDelay -1s: must not be negative":                             {BaseDelay: -time.Second},
		"latchgrpc: RetriesConfig.MaxDelay 1s: must be 0 or at least BaseDelay, 2s":                {BaseDelay: 2 * time.Second, MaxDelay: time.Second},
	} {
		_, err := latchgrpc.NewRetries(c)
		assert.EqualError(t, err, text)
		assert.PanicsWithError(t, text, func() { latchgrpc.MustNewRetries(c) })
	}
}
