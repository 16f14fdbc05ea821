// Package registry is a [shardedregistry.Registry] that many processes share. Each keeps a mirror of one KV
// bucket of NATS JetStream. Reads are local: they touch the mirror alone, and take about as long as in a
// shardedregistry. Writes go to the bucket, which stores them one after the other for each key, and return when
// the caller's mirror has the result.
//
//	plans, err := registry.Open(ctx, js, "plans", registry.Config[string, Plan]{})
//	version, err := plans.Create(ctx, "backup", Plan{Owner: "ada"})
//	entry, err := plans.Update(ctx, "backup", func(p Plan) (Plan, error) {
//		p.Runs++
//		return p, nil
//	})
//	plan, ok := plans.Get("backup") // local
//
// The methods have the names and the meaning of those of shardedregistry, and the errors match the same values.
// A [Version] is a revision of the bucket. Other clients may use the bucket, too.
//
// # What it promises
//
// Writes of one key are linearizable, together with all their answers: also those of calls that fail with
// [ErrExists], [ErrNotFound] or [ErrConflict]. A write takes effect at most once, and nothing that was
// acknowledged is lost unless the bucket loses it. A caller sees its own writes, and what a [Registry.Sync]
// proves. Other reads may be old, by as much as [Registry.Lag] says.
//
//	the bucket is           reads                   writes                                   Lag
//	well                    behind by a message     one request                              Attached
//	slow                    behind by as much       take as long                             Proven grows
//	without its leader      as before               wait for the next, some seconds          Proven grows
//	cut off from here       as before, unchanged    ErrUnavailable, or ErrUnknown            not Attached
//	                                                if it was sent, when ctx ends
//	down                    as before, unchanged    the same                                 not Attached
//	restored from a backup  as the backup, within   work; what came after the backup         Stats.Resets
//	                        some seconds            is lost
//	deleted                 as before, unchanged    ErrUnavailable when ctx ends             Err
//
// With Config.MaxLag, [Registry.Fresh] says whether the mirror has all writes that are older than that.
//
// A registry whose connection is closed ends: reads stay as they were, and everything else fails with [ErrClosed].
//
// # Keys and values
//
// Any string is a key. Bytes that a bucket does not allow are escaped as "=" and two hexadecimal digits. A key
// of the bucket that is not the result of that is foreign, and so is a value that Config.Codec does not decode:
// the registry does not show it, counts it in [Stats], and tells Config.OnForeign. Put overwrites a foreign
// value; no other method changes it.
//
// All readers of a key share its value: nobody may change what it refers to.
//
// # Claims
//
// To claim work, Create its key with a [TTL], and [Registry.Renew] it. Who wins holds the work until the key
// expires, also if it notes its progress with Update. The version is a fencing token: each later owner has a higher one, so a store that refuses lower ones
// is safe from an owner that was stopped and does not know that its time is over.
//
// # Limits
//
// A bucket with MaxBytes may be full: then a value that needs more room gives [ErrFull]. A replicated bucket refuses
// any message then, also one that replaces a larger one. So the registry keeps 4 KiB free, in the key
// "=sync.reserve", for what makes the bucket no larger: Delete, DeleteIf, smaller values below 4 KiB, Renew and
// sync messages. That needs permission for $JS.API.STREAM.PURGE of the bucket's stream. If bare clients take that room,
// these fail with ErrFull too, and Fresh turns stale, until MaxBytes is raised or keys are purged by the stream's API.
//
// A bucket with a TTL needs LimitMarkerTTL; without it keys expire unnoticed. It should be longer than MaxLag, and than a listing
// takes, which may miss markers that have expired meanwhile. Single values to which other clients give a time to live
// expire unnoticed if the bucket has a History above 1: the value before comes back. A purge that leaves no marker, by
// a stream's purge or by PurgeDeletes, is seen when the mirror lists the bucket next: see [Registry.Relist]. There are no unique
// indexes and no transactions, since a bucket has neither. While other clients overwrite keys faster than a
// mirror receives them, without a pause, Sync waits, and a listing does not end. Each replica keeps all keys in
// memory, and lists all when it attaches. Each is a consumer of the bucket's stream, of which a server of version
// 2.15 allows 1,000 unless its default_max_consumers, or MaxConsumers of the stream, says otherwise.
//
// JetStream acknowledges a write when a majority of servers has it in its files, and by default not when it is
// on their disks: a majority that loses its power at once may lose what it has acknowledged (sync_interval of
// the server).
package registry
