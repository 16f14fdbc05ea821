//go:build !modelcheck

package shardedregistry_test

import (
	"errors"
	"fmt"
	"slices"

	"github.com/latchfree/latchfree/shardedregistry"
)

// A transaction cannot read an index: others could give the value to a key before it commits. So what
// it needs to know of many keys is a key of its own, here how many jobs an owner has.
func ExampleTx_Put_quota() {
	type entity struct {
		owner string // of a job
		jobs  int    // of an owner
	}
	entities := shardedregistry.MustNew(shardedregistry.Config[string, entity]{
		Indexes: map[string]func(string, entity) []string{"owner": func(_ string, e entity) []string {
			if e.owner == "" {
				return nil
			}
			return []string{e.owner}
		}},
	})
	errQuota := errors.New("too many jobs")
	add := func(job, owner string) error {
		return entities.Transact(func(tx *shardedregistry.Tx[string, entity]) error {
			if _, ok := tx.Get("job/" + job); ok {
				return shardedregistry.ErrExists
			}
			count, _ := tx.Get("owner/" + owner)
			if count.jobs == 2 {
				return errQuota
			}
			if err := tx.Put("owner/"+owner, entity{jobs: count.jobs + 1}); err != nil {
				return err
			}
			return tx.Put("job/"+job, entity{owner: owner})
		})
	}
	fmt.Println(add("index", "ann"), add("mail", "ann"), add("post", "bob"), add("clean", "ann"))

	var jobs []string
	for e := range entities.ByIndex("owner", "ann") {
		jobs = append(jobs, e.Key)
	}
	slices.Sort(jobs)
	fmt.Println(jobs)
	// Output:
	// <nil> <nil> <nil> too many jobs
	// [job/index job/mail]
}
