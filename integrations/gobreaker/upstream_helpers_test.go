package gobreaker

// The methods and functions here give the adapted tests of gobreaker the names that
// they use for what is private there.

// expiresNever says what a zero expiry says there.
func expiresNever(c *core) bool { return c.current.Load().until == never }

func rollingOf(cb *CircuitBreaker[bool]) *rolling { return cb.core.current.Load().rolling }

type rollingCounts = rolling

func newRollingCounts(n int) *rollingCounts { return &rolling{buckets: make([]Counts, n)} }

func (n *Counts) onRequest()   { n.Requests++ }
func (n *Counts) onSuccess()   { n.end(success) }
func (n *Counts) onFailure()   { n.end(failure) }
func (n *Counts) onExclusion() { n.end(exclusion) }

func (r *rolling) onRequest()             { r.request() }
func (r *rolling) onSuccess(age uint64)   { r.end(success, age) }
func (r *rolling) onFailure(age uint64)   { r.end(failure, age) }
func (r *rolling) onExclusion(age uint64) { r.end(exclusion, age) }
func (r *rolling) roll()                  { r.grow(r.age.Load() + 1) }

// index returns where the bucket is that at returns.
func (r *rolling) index(age uint64) uint64 {
	for i := range r.buckets {
		if r.at(age) == &r.buckets[i] {
			return uint64(i)
		}
	}
	panic("no bucket")
}
func (r *rolling) current() uint64 { return r.index(r.age.Load()) }

// bucketAt returns a bucket; 0 is the newest, and -1 the one before.
func (r *rolling) bucketAt(i int) Counts {
	n := len(r.buckets)
	return r.buckets[(int(r.current())+i%n+n)%n]
}
