package latchgrpc_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/latchfree/latchfree/atomicbreaker"
	latchgrpc "github.com/latchfree/latchfree/integrations/grpc"
)

func TestClassifyBreaker(t *testing.T) {
	failures := map[codes.Code]bool{codes.Unknown: true, codes.DeadlineExceeded: true, codes.Internal: true, codes.Unavailable: true, codes.DataLoss: true}
	ignored := map[codes.Code]bool{codes.Canceled: true, codes.ResourceExhausted: true}
	for code := codes.OK; code <= codes.Unauthenticated; code++ {
		want := atomicbreaker.Success
		switch {
		case failures[code]:
			want = atomicbreaker.Failure
		case ignored[code]:
			want = atomicbreaker.Ignored
		}
		assert.Equal(t, want, latchgrpc.ClassifyBreaker(context.Background(), status.Error(code, "")), code)
	}
}

func TestClassifyContexts(t *testing.T) {
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	late, cancel := context.WithTimeout(context.Background(), -time.Second)
	defer cancel()
	canceled := status.Error(codes.Canceled, "")
	for _, classify := range []latchgrpc.Classify{latchgrpc.ClassifyBreaker, latchgrpc.ClassifyThrottle} {
		assert.Equal(t, atomicbreaker.Ignored, classify(cancelled, errDown))
		assert.Equal(t, atomicbreaker.Success, classify(cancelled, nil))
		assert.Equal(t, atomicbreaker.Failure, classify(late, canceled))
		assert.Equal(t, atomicbreaker.Failure, classify(late, context.DeadlineExceeded))
		assert.Equal(t, atomicbreaker.Ignored, classify(context.Background(), fmt.Errorf("x: %w", context.Canceled)))
		assert.Equal(t, atomicbreaker.Failure, classify(context.Background(), fmt.Errorf("x: %w", errDown)))
	}
	assert.Equal(t, atomicbreaker.Ignored, latchgrpc.ClassifyBreaker(late, atomicbreaker.ErrOpen))
	assert.Equal(t, atomicbreaker.Failure, latchgrpc.ClassifyBreaker(late, errors.New("plain")))
	assert.Equal(t, atomicbreaker.Success, latchgrpc.ClassifyThrottle(late, errors.New("plain")))
}

func TestFailOn(t *testing.T) {
	classify := latchgrpc.FailOn(codes.NotFound, codes.Code(99))
	assert.Equal(t, atomicbreaker.Failure, classify(context.Background(), errAbsent))
	assert.Equal(t, atomicbreaker.Success, classify(context.Background(), errDown))
	assert.Equal(t, atomicbreaker.Success, classify(context.Background(), status.Error(codes.Code(99), "")))
}
