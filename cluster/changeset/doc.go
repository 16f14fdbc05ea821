// Package changeset keeps the changesets of a cowchangeset.Tracker in a stream of NATS
// JetStream, so that they outlive the machine.
//
// A [Store] is a cowchangeset.Store. One tracker, a trail, has one stream:
//
//	_, err := js.CreateStream(ctx, changeset.StreamConfig("CHANGES", 3))
//	store, err := changeset.Open(ctx, js, changeset.Options[Change]{Stream: "CHANGES"})
//	tracker, err := cowchangeset.Resume(ctx, cowchangeset.Config[Change]{Store: store})
//
// Any replica can resume the trail, and takes it from the one that had it. A Store that
// was not claimed reads: [Store.Load] and [Store.Follow] work from elsewhere while the trail is written.
//
// # What is promised
//
// A call that returns nil is committed by a majority of the stream's replicas. Records
// that wait at the same time share one message. A record that is larger than a message
// may be is split, and survives whole or not at all.
//
//	event                              result
//	an acknowledgement is lost         the message is sent again until the call's context ends, and has one effect
//	the call's context ends            ErrUnknown; the tracker repeats the call, with one effect
//	the stream's leader is lost        calls wait for the next one, as long as their context lasts
//	no quorum, or no server            calls wait; nothing is acknowledged; Records go on in memory with Config.Async
//	the writer is cut off              the same; it fails with ErrFenced later if another replica has resumed
//	two replicas resume                the later one has the trail; the other one's calls fail with ErrFenced
//	the stream is restored from a      a writer that knows more gets ErrRewound, or ErrFenced when another
//	backup, or made anew               has resumed; it never continues in the other history
//	the stream is full                 calls fail with the server's error; they work when there is room
//	foreign messages                   ErrForeign, with the sequence; removing the message mends it
//	messages were removed or purged    ErrCorrupt
//	a value cannot be kept             its own Record fails with ErrRefused
//
// Servers acknowledge what they have written to files, not what is on their disks, unless
// they run with sync_interval: always. A trail survives the loss of power of a minority of
// its replicas; of all at once, with that setting only.
//
// # Two replicas
//
// A claim has no deadline and depends on no clock: each message goes behind its writer's
// own last message, or nowhere, and a claim goes between; a message that says nothing goes
// before it if the writer leaves no gap. So from the claim on, no message
// of the earlier writer is accepted, however late it arrives. The claim does not choose
// which replica should run: replicas that resume in turn take the trail from each other.
//
// A fence protects the trail only. A function given to Changeset.Apply that works
// elsewhere may still run in the earlier process.
//
// # The stream
//
// [Open] refuses a stream that would lose or reject records: see [StreamConfig]. Prune
// purges messages. The connection needs permission to publish to <stream>.* and to
// $JS.API.STREAM.INFO, STREAM.MSG.GET or DIRECT.GET, STREAM.PURGE, CONSUMER.CREATE,
// CONSUMER.MSG.NEXT and CONSUMER.DELETE of the stream; who only reads, to the latter.
//
// Messages have a header Changeset-Record, in JSON. The body of an append has, for each
// entry, a line with its Seq and its length, and the encoded value. Other programs may
// read the stream. They must not write to it.
//
// # Costs
//
// A call is one message, or no message if it says nothing new. A Store has no goroutine,
// and about 200 bytes and the ID in memory for each changeset that was not pruned. Load
// reads the whole stream once, and has its entries in memory, encoded, until it has yielded them.
package changeset
