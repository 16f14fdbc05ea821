// This file has the tests of counter_test.go of github.com/sony/gobreaker/v2 v2.4.0.
// Adapted are:
//   - The counts are those of rolling here, under the names in upstream_helpers_test.go.
//   - There are always two buckets or more, so that what tests none or a negative number
//     of them is left out: TestNewRollingCounts, TestEmptyRollingCounts, and the first lines
//     of TestRollingCountsCurrent and TestRollingCountsIndex.
//   - Nothing clears counts, since a generation has counts of its own. The lines that do
//     are left out.
//
// The license of these tests:
//
// The MIT License (MIT)
//
// Copyright 2015 Sony Corporation
//
// Permission is hereby granted, free of charge, to any person obtaining a copy
// of this software and associated documentation files (the "Software"), to deal
// in the Software without restriction, including without limitation the rights
// to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
// copies of the Software, and to permit persons to whom the Software is
// furnished to do so, subject to the following conditions:
//
// The above copyright notice and this permission notice shall be included in
// all copies or substantial portions of the Software.
//
// THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
// IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
// FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
// AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
// LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
// OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN
// THE SOFTWARE.

package gobreaker

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestCountsMethods(t *testing.T) {
	counts := Counts{}

	counts.onRequest()
	assert.Equal(t, Counts{Requests: 1}, counts)

	counts.onSuccess()
	assert.Equal(t, Counts{Requests: 1, TotalSuccesses: 1, ConsecutiveSuccesses: 1}, counts)

	counts.onRequest()
	assert.Equal(t, Counts{Requests: 2, TotalSuccesses: 1, ConsecutiveSuccesses: 1}, counts)

	counts.onSuccess()
	assert.Equal(t, Counts{Requests: 2, TotalSuccesses: 2, ConsecutiveSuccesses: 2}, counts)

	counts.onRequest()
	assert.Equal(t, Counts{Requests: 3, TotalSuccesses: 2, ConsecutiveSuccesses: 2}, counts)

	counts.onFailure()
	assert.Equal(t, Counts{Requests: 3, TotalSuccesses: 2, TotalFailures: 1, ConsecutiveSuccesses: 0, ConsecutiveFailures: 1}, counts)

	counts.onRequest()
	assert.Equal(t, Counts{Requests: 4, TotalSuccesses: 2, TotalFailures: 1, ConsecutiveSuccesses: 0, ConsecutiveFailures: 1}, counts)

	counts.onFailure()
	assert.Equal(t, Counts{Requests: 4, TotalSuccesses: 2, TotalFailures: 2, ConsecutiveSuccesses: 0, ConsecutiveFailures: 2}, counts)

	counts.onRequest()
	assert.Equal(t, Counts{Requests: 5, TotalSuccesses: 2, TotalFailures: 2, ConsecutiveSuccesses: 0, ConsecutiveFailures: 2}, counts)

	counts.onExclusion()
	assert.Equal(t, Counts{Requests: 5, TotalSuccesses: 2, TotalFailures: 2, TotalExclusions: 1, ConsecutiveSuccesses: 0, ConsecutiveFailures: 2}, counts)

}

func TestRollingCountsIndex(t *testing.T) {
	rc := newRollingCounts(5)
	assert.Equal(t, uint64(0), rc.index(0))
	assert.Equal(t, uint64(1), rc.index(1))
	assert.Equal(t, uint64(2), rc.index(2))
	assert.Equal(t, uint64(3), rc.index(3))
	assert.Equal(t, uint64(4), rc.index(4))
	assert.Equal(t, uint64(0), rc.index(5))
	assert.Equal(t, uint64(1), rc.index(6))
}

func TestRollingCountsCurrent(t *testing.T) {
	rc := newRollingCounts(5)
	assert.Equal(t, uint64(0), rc.current())
	rc.roll()
	assert.Equal(t, uint64(1), rc.current())
	rc.roll()
	assert.Equal(t, uint64(2), rc.current())
	rc.roll()
	assert.Equal(t, uint64(3), rc.current())
	rc.roll()
	assert.Equal(t, uint64(4), rc.current())
	rc.roll()
	assert.Equal(t, uint64(0), rc.current())
	rc.roll()
	assert.Equal(t, uint64(1), rc.current())
}

func TestRollingCountsMethods(t *testing.T) {
	rc := newRollingCounts(2)
	assert.Equal(t, uint64(0), rc.age.Load())
	assert.Equal(t, Counts{}, rc.n)
	assert.Equal(t, Counts{}, rc.buckets[rc.index(0)])
	assert.Equal(t, Counts{}, rc.buckets[rc.index(1)])

	rc.onRequest()
	assert.Equal(t, Counts{Requests: 1}, rc.n)
	assert.Equal(t, Counts{Requests: 1}, rc.buckets[rc.index(0)])
	assert.Equal(t, Counts{}, rc.buckets[rc.index(1)])

	rc.onSuccess(0)
	assert.Equal(t, Counts{Requests: 1, TotalSuccesses: 1, ConsecutiveSuccesses: 1}, rc.n)
	assert.Equal(t, Counts{Requests: 1, TotalSuccesses: 1, ConsecutiveSuccesses: 1}, rc.buckets[rc.index(0)])
	assert.Equal(t, Counts{}, rc.buckets[rc.index(1)])

	rc.onRequest()
	assert.Equal(t, Counts{Requests: 2, TotalSuccesses: 1, ConsecutiveSuccesses: 1}, rc.n)
	assert.Equal(t, Counts{Requests: 2, TotalSuccesses: 1, ConsecutiveSuccesses: 1}, rc.buckets[rc.index(0)])
	assert.Equal(t, Counts{}, rc.buckets[rc.index(1)])

	rc.onFailure(0)
	assert.Equal(t, Counts{Requests: 2, TotalSuccesses: 1, TotalFailures: 1, ConsecutiveSuccesses: 0, ConsecutiveFailures: 1}, rc.n)
	assert.Equal(t, Counts{Requests: 2, TotalSuccesses: 1, TotalFailures: 1, ConsecutiveSuccesses: 0, ConsecutiveFailures: 1}, rc.buckets[rc.index(0)])
	assert.Equal(t, Counts{}, rc.buckets[rc.index(1)])

	rc.onRequest()
	assert.Equal(t, Counts{Requests: 3, TotalSuccesses: 1, TotalFailures: 1, ConsecutiveSuccesses: 0, ConsecutiveFailures: 1}, rc.n)
	assert.Equal(t, Counts{Requests: 3, TotalSuccesses: 1, TotalFailures: 1, ConsecutiveSuccesses: 0, ConsecutiveFailures: 1}, rc.buckets[rc.index(0)])
	assert.Equal(t, Counts{}, rc.buckets[rc.index(1)])

	rc.onSuccess(0)
	assert.Equal(t, Counts{Requests: 3, TotalSuccesses: 2, TotalFailures: 1, ConsecutiveSuccesses: 1, ConsecutiveFailures: 0}, rc.n)
	assert.Equal(t, Counts{Requests: 3, TotalSuccesses: 2, TotalFailures: 1, ConsecutiveSuccesses: 1, ConsecutiveFailures: 0}, rc.buckets[rc.index(0)])
	assert.Equal(t, Counts{}, rc.buckets[rc.index(1)])

	rc.onRequest()
	assert.Equal(t, Counts{Requests: 4, TotalSuccesses: 2, TotalFailures: 1, ConsecutiveSuccesses: 1, ConsecutiveFailures: 0}, rc.n)
	assert.Equal(t, Counts{Requests: 4, TotalSuccesses: 2, TotalFailures: 1, ConsecutiveSuccesses: 1, ConsecutiveFailures: 0}, rc.buckets[rc.index(0)])
	assert.Equal(t, Counts{}, rc.buckets[rc.index(1)])

	rc.onExclusion(0)
	assert.Equal(t, Counts{Requests: 4, TotalSuccesses: 2, TotalFailures: 1, TotalExclusions: 1, ConsecutiveSuccesses: 1, ConsecutiveFailures: 0}, rc.n)
	assert.Equal(t, Counts{Requests: 4, TotalSuccesses: 2, TotalFailures: 1, TotalExclusions: 1, ConsecutiveSuccesses: 1, ConsecutiveFailures: 0}, rc.buckets[rc.index(0)])
	assert.Equal(t, Counts{}, rc.buckets[rc.index(1)])

	rc.roll()
	assert.Equal(t, uint64(1), rc.age.Load())
	assert.Equal(t, Counts{Requests: 4, TotalSuccesses: 2, TotalFailures: 1, TotalExclusions: 1, ConsecutiveSuccesses: 1, ConsecutiveFailures: 0}, rc.n)
	assert.Equal(t, Counts{Requests: 4, TotalSuccesses: 2, TotalFailures: 1, TotalExclusions: 1, ConsecutiveSuccesses: 1, ConsecutiveFailures: 0}, rc.buckets[rc.index(0)])
	assert.Equal(t, Counts{}, rc.buckets[rc.index(1)])

	rc.onRequest()
	assert.Equal(t, Counts{Requests: 5, TotalSuccesses: 2, TotalFailures: 1, TotalExclusions: 1, ConsecutiveSuccesses: 1, ConsecutiveFailures: 0}, rc.n)
	assert.Equal(t, Counts{Requests: 4, TotalSuccesses: 2, TotalFailures: 1, TotalExclusions: 1, ConsecutiveSuccesses: 1, ConsecutiveFailures: 0}, rc.buckets[rc.index(0)])
	assert.Equal(t, Counts{Requests: 1}, rc.buckets[rc.index(1)])

	rc.onSuccess(1)
	assert.Equal(t, Counts{Requests: 5, TotalSuccesses: 3, TotalFailures: 1, TotalExclusions: 1, ConsecutiveSuccesses: 2, ConsecutiveFailures: 0}, rc.n)
	assert.Equal(t, Counts{Requests: 4, TotalSuccesses: 2, TotalFailures: 1, TotalExclusions: 1, ConsecutiveSuccesses: 1, ConsecutiveFailures: 0}, rc.buckets[rc.index(0)])
	assert.Equal(t, Counts{Requests: 1, TotalSuccesses: 1, ConsecutiveSuccesses: 1}, rc.buckets[rc.index(1)])

	rc.roll()
	assert.Equal(t, uint64(2), rc.age.Load())
	assert.Equal(t, Counts{Requests: 1, TotalSuccesses: 1, ConsecutiveSuccesses: 1}, rc.n)
	assert.Equal(t, Counts{}, rc.buckets[rc.index(0)])
	assert.Equal(t, Counts{Requests: 1, TotalSuccesses: 1, ConsecutiveSuccesses: 1}, rc.buckets[rc.index(1)])
}

func TestRollingCountsGrow(t *testing.T) {
	rc := newRollingCounts(2)

	rc.onRequest()
	rc.onSuccess(0)
	rc.onRequest()
	rc.onFailure(0)
	rc.onRequest()
	rc.onExclusion(0)

	rc.grow(0) // no change
	assert.Equal(t, uint64(0), rc.age.Load())
	assert.Equal(t, Counts{Requests: 3, TotalSuccesses: 1, TotalFailures: 1, TotalExclusions: 1, ConsecutiveSuccesses: 0, ConsecutiveFailures: 1}, rc.n)
	assert.Equal(t, Counts{Requests: 3, TotalSuccesses: 1, TotalFailures: 1, TotalExclusions: 1, ConsecutiveSuccesses: 0, ConsecutiveFailures: 1}, rc.bucketAt(0))
	assert.Equal(t, Counts{}, rc.bucketAt(1))

	rc.grow(1)
	assert.Equal(t, uint64(1), rc.age.Load())
	assert.Equal(t, Counts{Requests: 3, TotalSuccesses: 1, TotalFailures: 1, TotalExclusions: 1, ConsecutiveSuccesses: 0, ConsecutiveFailures: 1}, rc.n)
	assert.Equal(t, Counts{}, rc.bucketAt(0))
	assert.Equal(t, Counts{Requests: 3, TotalSuccesses: 1, TotalFailures: 1, TotalExclusions: 1, ConsecutiveSuccesses: 0, ConsecutiveFailures: 1}, rc.bucketAt(1))

	rc.grow(0) // no change
	assert.Equal(t, uint64(1), rc.age.Load())
	assert.Equal(t, Counts{Requests: 3, TotalSuccesses: 1, TotalFailures: 1, TotalExclusions: 1, ConsecutiveSuccesses: 0, ConsecutiveFailures: 1}, rc.n)
	assert.Equal(t, Counts{}, rc.bucketAt(0))
	assert.Equal(t, Counts{Requests: 3, TotalSuccesses: 1, TotalFailures: 1, TotalExclusions: 1, ConsecutiveSuccesses: 0, ConsecutiveFailures: 1}, rc.bucketAt(1))

	rc.grow(2)
	assert.Equal(t, uint64(2), rc.age.Load())
	assert.Equal(t, Counts{}, rc.n)
	assert.Equal(t, Counts{}, rc.bucketAt(0))
	assert.Equal(t, Counts{}, rc.bucketAt(1))

	rc.onRequest()
	rc.onSuccess(0)
	rc.onRequest()
	rc.onFailure(0)
	rc.onRequest()
	rc.onExclusion(0)

	assert.Equal(t, uint64(2), rc.age.Load())
	assert.Equal(t, Counts{Requests: 3}, rc.n)
	assert.Equal(t, Counts{Requests: 3}, rc.bucketAt(0))
	assert.Equal(t, Counts{}, rc.bucketAt(1))

	rc.onRequest()
	rc.onSuccess(3)
	rc.onRequest()
	rc.onFailure(3)
	rc.onRequest()
	rc.onExclusion(3)

	assert.Equal(t, uint64(2), rc.age.Load())
	assert.Equal(t, Counts{Requests: 6}, rc.n)
	assert.Equal(t, Counts{Requests: 6}, rc.bucketAt(0))
	assert.Equal(t, Counts{}, rc.bucketAt(1))

	rc.onRequest()
	rc.onSuccess(1)
	rc.onRequest()
	rc.onFailure(1)
	rc.onRequest()
	rc.onExclusion(1)

	assert.Equal(t, uint64(2), rc.age.Load())
	assert.Equal(t, Counts{Requests: 9, TotalSuccesses: 1, TotalFailures: 1, TotalExclusions: 1, ConsecutiveSuccesses: 0, ConsecutiveFailures: 1}, rc.n)
	assert.Equal(t, Counts{Requests: 9}, rc.bucketAt(0))
	assert.Equal(t, Counts{TotalSuccesses: 1, TotalFailures: 1, TotalExclusions: 1, ConsecutiveSuccesses: 0, ConsecutiveFailures: 1}, rc.bucketAt(1))

	rc.onRequest()
	rc.onSuccess(2)
	rc.onRequest()
	rc.onFailure(2)
	rc.onRequest()
	rc.onExclusion(2)

	assert.Equal(t, uint64(2), rc.age.Load())
	assert.Equal(t, Counts{Requests: 12, TotalSuccesses: 2, TotalFailures: 2, TotalExclusions: 2, ConsecutiveSuccesses: 0, ConsecutiveFailures: 1}, rc.n)
	assert.Equal(t, Counts{Requests: 12, TotalSuccesses: 1, TotalFailures: 1, TotalExclusions: 1, ConsecutiveSuccesses: 0, ConsecutiveFailures: 1}, rc.bucketAt(0))
	assert.Equal(t, Counts{TotalSuccesses: 1, TotalFailures: 1, TotalExclusions: 1, ConsecutiveSuccesses: 0, ConsecutiveFailures: 1}, rc.bucketAt(1))

	rc.grow(4)
	assert.Equal(t, uint64(4), rc.age.Load())
	assert.Equal(t, Counts{}, rc.n)
	assert.Equal(t, Counts{}, rc.bucketAt(0))
	assert.Equal(t, Counts{}, rc.bucketAt(1))
}

func TestRollingCountsBucketAt(t *testing.T) {
	rc := newRollingCounts(2)
	assert.Equal(t, uint64(0), rc.age.Load())
	assert.Equal(t, Counts{}, rc.n)
	assert.Equal(t, Counts{}, rc.bucketAt(0))
	assert.Equal(t, Counts{}, rc.bucketAt(1))

	rc.onRequest()
	assert.Equal(t, Counts{Requests: 1}, rc.n)
	assert.Equal(t, Counts{Requests: 1}, rc.bucketAt(0))
	assert.Equal(t, Counts{}, rc.bucketAt(1))

	rc.onFailure(0)
	assert.Equal(t, Counts{Requests: 1, TotalFailures: 1, ConsecutiveFailures: 1}, rc.n)
	assert.Equal(t, Counts{Requests: 1, TotalFailures: 1, ConsecutiveFailures: 1}, rc.bucketAt(0))
	assert.Equal(t, Counts{}, rc.bucketAt(1))

	rc.onRequest()
	assert.Equal(t, Counts{Requests: 2, TotalFailures: 1, ConsecutiveFailures: 1}, rc.n)
	assert.Equal(t, Counts{Requests: 2, TotalFailures: 1, ConsecutiveFailures: 1}, rc.bucketAt(2))
	assert.Equal(t, Counts{}, rc.bucketAt(3))

	rc.onSuccess(0)
	assert.Equal(t, Counts{Requests: 2, TotalSuccesses: 1, TotalFailures: 1, ConsecutiveSuccesses: 1, ConsecutiveFailures: 0}, rc.n)
	assert.Equal(t, Counts{Requests: 2, TotalSuccesses: 1, TotalFailures: 1, ConsecutiveSuccesses: 1, ConsecutiveFailures: 0}, rc.bucketAt(-2))
	assert.Equal(t, Counts{}, rc.bucketAt(-3))

	rc.onRequest()
	assert.Equal(t, Counts{Requests: 3, TotalSuccesses: 1, TotalFailures: 1, ConsecutiveSuccesses: 1, ConsecutiveFailures: 0}, rc.n)
	assert.Equal(t, Counts{Requests: 3, TotalSuccesses: 1, TotalFailures: 1, ConsecutiveSuccesses: 1, ConsecutiveFailures: 0}, rc.bucketAt(0))
	assert.Equal(t, Counts{}, rc.bucketAt(1))

	rc.onFailure(0)
	assert.Equal(t, Counts{Requests: 3, TotalSuccesses: 1, TotalFailures: 2, ConsecutiveSuccesses: 0, ConsecutiveFailures: 1}, rc.n)
	assert.Equal(t, Counts{Requests: 3, TotalSuccesses: 1, TotalFailures: 2, ConsecutiveSuccesses: 0, ConsecutiveFailures: 1}, rc.bucketAt(0))
	assert.Equal(t, Counts{}, rc.bucketAt(1))

	rc.roll()
	assert.Equal(t, uint64(1), rc.age.Load())
	assert.Equal(t, Counts{Requests: 3, TotalSuccesses: 1, TotalFailures: 2, ConsecutiveSuccesses: 0, ConsecutiveFailures: 1}, rc.n)
	assert.Equal(t, Counts{}, rc.bucketAt(0))
	assert.Equal(t, Counts{Requests: 3, TotalSuccesses: 1, TotalFailures: 2, ConsecutiveSuccesses: 0, ConsecutiveFailures: 1}, rc.bucketAt(1))

	rc.onRequest()
	assert.Equal(t, Counts{Requests: 4, TotalSuccesses: 1, TotalFailures: 2, ConsecutiveSuccesses: 0, ConsecutiveFailures: 1}, rc.n)
	assert.Equal(t, Counts{Requests: 1}, rc.bucketAt(0))
	assert.Equal(t, Counts{Requests: 3, TotalSuccesses: 1, TotalFailures: 2, ConsecutiveSuccesses: 0, ConsecutiveFailures: 1}, rc.bucketAt(1))

	rc.onFailure(1)
	assert.Equal(t, Counts{Requests: 4, TotalSuccesses: 1, TotalFailures: 3, ConsecutiveSuccesses: 0, ConsecutiveFailures: 2}, rc.n)
	assert.Equal(t, Counts{Requests: 1, TotalFailures: 1, ConsecutiveFailures: 1}, rc.bucketAt(0))
	assert.Equal(t, Counts{Requests: 3, TotalSuccesses: 1, TotalFailures: 2, ConsecutiveSuccesses: 0, ConsecutiveFailures: 1}, rc.bucketAt(1))

	rc.onRequest()
	assert.Equal(t, Counts{Requests: 5, TotalSuccesses: 1, TotalFailures: 3, ConsecutiveSuccesses: 0, ConsecutiveFailures: 2}, rc.n)
	assert.Equal(t, Counts{Requests: 2, TotalFailures: 1, ConsecutiveFailures: 1}, rc.bucketAt(0))
	assert.Equal(t, Counts{Requests: 3, TotalSuccesses: 1, TotalFailures: 2, ConsecutiveSuccesses: 0, ConsecutiveFailures: 1}, rc.bucketAt(1))

	rc.onExclusion(0)
	assert.Equal(t, Counts{Requests: 5, TotalSuccesses: 1, TotalFailures: 3, TotalExclusions: 1, ConsecutiveSuccesses: 0, ConsecutiveFailures: 2}, rc.n)
	assert.Equal(t, Counts{Requests: 2, TotalFailures: 1, ConsecutiveFailures: 1}, rc.bucketAt(0))
	assert.Equal(t, Counts{Requests: 3, TotalSuccesses: 1, TotalFailures: 2, TotalExclusions: 1, ConsecutiveSuccesses: 0, ConsecutiveFailures: 1}, rc.bucketAt(1))

	rc.roll()
	assert.Equal(t, uint64(2), rc.age.Load())
	assert.Equal(t, Counts{Requests: 2, TotalFailures: 1, ConsecutiveFailures: 1}, rc.n)
	assert.Equal(t, Counts{}, rc.bucketAt(0))
	assert.Equal(t, Counts{Requests: 2, TotalFailures: 1, ConsecutiveFailures: 1}, rc.bucketAt(1))
}
