// Package journal keeps changesets in files, for years.
//
// A [Journal] is a Store of package cowchangeset. A tracker that has one is
// resumed where it was when the process ended, however it ended:
//
//	j, err := journal.Open[Change]("changes", journal.Options{})
//	tracker, err := cowchangeset.Resume(ctx, cowchangeset.Config[Change]{Store: j})
//
// A [Reader] looks at a journal from elsewhere, also while it is written, and
// follows it. [VerifyFrom] checks one, [Repair] cuts a damaged end off, and the
// command in cmd/journal does both for operators.
//
// # The files
//
// A journal is a directory of segments, 0000000001.journal and so on, of which only
// the last one grows. When it has [Options].SegmentSize, or at [Journal.Rotate], the
// next one begins. Segments are JSON, one object on each line. The first line is the
// segment's header; then comes one line for each call of the store that says
// something new (here without prev and hash, which all lines have):
//
//	{"line":1,"op":"journal","format":2,"journal":"…","segment":1,"ordinal":0,"id":"","previous":""}
//	{"line":2,"op":"start","id":"…","ordinal":1,"previous":""}
//	{"line":3,"op":"append","id":"…","entries":[{"seq":0,"value":…},{"seq":1,"value":…}]}
//	{"line":4,"op":"seal","id":"…","len":2,"last":1}
//	{"line":5,"op":"abort","id":"…","reason":"…"}
//	{"line":6,"op":"applied","id":"…","next":18446744073709551615}
//	{"line":7,"op":"prune","before":2}
//
// Lines are numbered through all segments. A header names the journal, by random
// text that was made with it, and the changeset that was the latest one.
//
// The hash of a line is the SHA-256 of its bytes before ,"hash": in hexadecimal,
// and prev is the hash of the line before it: for the first one, 64 zeros. So a
// change of any byte shows, but for the last newline, which Open puts back. What is
// cut off from the end at a newline shows to those who have kept [Journal.Hash]
// elsewhere; and so does a chain that somebody has made anew. Open, VerifyFrom and
// the command check all that, and the shell can check the chain:
//
//	n=0
//	cat changes/*.journal | while IFS= read -r line; do
//		body=${line%,\"hash\":*}
//		if [ $n = 0 ]; then
//			n=${line#*:} n=$((${n%%,*}-1)) prev=${body%?} prev=${prev##*\"}
//		fi
//		n=$((n+1)) hash=$(printf %s "$body" | sha256sum | cut -c 1-64)
//		case $line in
//		"{\"line\":$n,"*",\"prev\":\"$prev\",\"hash\":\"$hash\"}") prev=$hash ;;
//		*) echo "line $n is corrupt"; break ;;
//		esac
//	done
//
// A journal of format 1 was one file. Open makes it the first segment of a
// directory at its path, and goes on in a second one.
//
// # Values
//
// Values are as encoding/json makes them. A type that cannot be read back, as an
// interface with methods, is refused by Open, and a value that cannot by
// [Journal.Validate], which a tracker asks before it accepts an entry; so is one that
// is longer than Options.MaxEntry. Where the type does not say that all is well, as a
// struct of plain fields does, Validate decodes what it has encoded. Numbers in an
// any are read back as json.Number.
//
// What is decoded need not be what was encoded: encoding/json replaces what is not
// UTF-8 in strings by U+FFFD, leaves out fields that are not exported or that share a
// name, loses map entries whose keys become equal as text, and the seconds of a time
// zone's offset; nil may become null, and an empty json.Number 0. So keep to types
// that survive a round trip, which a test can tell.
//
// When a program changes the type, Options.Upcast makes the values of before into
// those of now, each as it is read. What cannot be decoded is a [DecodeError], which
// names the line, the changeset and the Seq.
//
// # What survives
//
// A call that has returned nil has its line in a segment and, with [SyncAlways],
// on the disk. One call of Append is one line, and thus survives whole or not at
// all. A segment has its name when its header is on the disk, and that after all
// that came before it.
//
// If the process ends within a write, the last line may be cut off. Open removes
// it: see [Journal.Recovered]. If the machine crashes, the disk may have any part
// of what was not yet synced. Mostly that is a cut-off line too. But if the disk
// has a later part without an earlier one, it is a line that is not as it was
// written, and Open cannot tell that from damage done to the file at rest: it
// returns a [CorruptError]. All before its place is good; to cut the journal there,
// with Repair, is for a person to decide. With SyncAlways, no call had returned nil
// for what a crash damaged.
//
// # What fails
//
// A write that fails, as on a full disk, fails the calls that it was for. What it
// left in the file is removed before anything else is written.
//
// When fsync fails, the journal is broken: all later calls return the same error,
// which matches [ErrBroken], until it is opened again. The same goes for a failed
// write whose remains cannot be removed, and for files that somebody else has
// changed: before it acknowledges anything, the journal looks whether the last
// segment still is the file that it has opened, at its path, and as long as the
// journal has made it. After a failed fsync some kernels show what they could not
// write to the disk, as long as they have it in memory, and forget that they could
// not. So the file may seem to have more, when it is opened again, than after a
// crash of the machine. Find out what is wrong with the disk first.
//
// # Pruning
//
// [Journal.Prune], which [cowchangeset.Tracker.Prune] calls, forgets changesets from
// the oldest on that are sealed, and applied or aborted. Segments that are about
// nothing else are removed, or moved to Options.Archive. What is left verifies by
// itself, as the header of its first segment has the hash of the line before it; and
// it verifies together with what was archived. Copy segments but the last at any
// time: they do not change.
//
// # Costs
//
// Calls that wait for the disk at the same time share one write and one fsync. In
// memory the journal has about 130 bytes, the ID, and the reason of an abort for each
// changeset that was not pruned, and no entries. Open and Load read all segments that there are, hash them
// on a goroutine of their own meanwhile, and need room for the longest lines, some
// at a time: a tracker tells of up to 4,096 entries in one line, and of a batch always.
// Validate encodes each entry once more than writing it does.
//
// DESIGN.md, beside this file, has the rules that lines keep, what a crash can
// leave, and what opening costs, measured.
package journal
