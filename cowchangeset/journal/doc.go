// Package journal keeps changesets in files, for years.
//
// A [Journal] is a Store of package cowchangeset. A tracker with a journal resumes
// where it was when the process ended, however it ended:
//
//	j, err := journal.Open[Change]("changes", journal.Options{})
//	tracker, err := cowchangeset.Resume(ctx, cowchangeset.Config[Change]{Store: j})
//	…
//	err = tracker.Flush(ctx) // with Config.Async
//	err = j.Close()
//
// A journal grows until [cowchangeset.Tracker.Prune] forgets changesets. If Open finds it
// damaged, package journal/repair removes what is damaged, and nothing else.
//
// Package journal/reader reads a journal from elsewhere, also while it is written, follows
// it, and verifies it. The command in cmd/journal does that, and repairs, for operators.
//
// # Values
//
// Values are encoded by encoding/json. Open refuses a type that cannot be read back,
// such as an interface with methods. [Journal.Validate], which a tracker calls before
// it accepts an entry, refuses a value that cannot be read back, or is longer than
// Options.MaxEntry. Where the type does not guarantee that all values can be read
// back, as a struct of plain fields does, Validate decodes what it has encoded. Numbers
// in an any are read back as json.Number.
//
// A decoded value need not equal the encoded one. encoding/json replaces bytes that
// are not UTF-8 in strings by U+FFFD. It leaves out fields that are not exported or
// that share a name. It loses map entries whose keys become equal as text, and the
// seconds of a time zone's offset. Nil may become null, and an empty json.Number 0. So
// keep to types that survive a round trip, and test that.
//
// When a program changes the type, Options.Upcast converts older values, each as it is
// read. A value that cannot be decoded gives a [DecodeError], which names the line, the
// changeset and the Seq.
//
// # Crashes
//
// A call that has returned nil has its line in a segment and, with [SyncAlways], on
// the disk. One call of Append is one line, and thus survives whole or not at all. A
// segment gets its name when its header, and everything before it, is on the disk.
//
// If the process ends within a write, the last line may be cut off. Open removes it:
// see [Journal.Recovered]. If the machine crashes, the disk may have any part of the
// data that was not yet synced. Mostly that is a cut-off line too. But if the disk has a
// later part without an earlier one, there is a line that is not as it was written, and
// Open cannot tell it from later damage to the file: it returns a [CorruptError].
// Everything before its place is good. With SyncAlways, no call had returned nil for the
// lines that a crash damaged. Whether to repair the journal is for a person to decide:
// repair.Examine says what repair.Repair would do.
//
// # Damage
//
// Damage to a segment that has others behind it costs that segment. A repair takes it out,
// and a line at the end of the journal says so, which is hashed as all lines are: nobody
// takes a segment out unnoticed, and reader.Verify reports the gap. Its entries are lost; how the
// changesets were, the next segment says. Those with entries in it that are neither applied
// nor aborted become aborted: they would be applied without them. If the segment is found
// in a backup, put it back: its lines are read again.
//
// Damage to a segment that Open does not read shows when somebody reads its entries, or in
// a reader.Verify: run one now and then, as in a goroutine beside the open journal.
//
// # Failures
//
// A write that fails, as on a full disk, fails the calls that it was for. Its remains
// in the file are removed before anything else is written.
//
// When fsync fails, the journal is broken: all later calls return the same error, which
// matches [ErrBroken], until it is opened again. The same goes for a failed write whose
// remains cannot be removed, and for files that somebody else has changed: before the
// journal acknowledges anything, it checks that the path of the last segment still names
// the file that it has opened, with the length that it has given it. After a failed
// fsync some kernels still show data that they could not write, as long as they have it
// in memory, and forget the failure. So the file may seem to have more when it is opened
// again than after a crash of the machine. Find out what is wrong with the disk first.
//
// # Pruning
//
// [Journal.Prune], which [cowchangeset.Tracker.Prune] calls, forgets changesets from
// the oldest on that are sealed, and applied or aborted. Segments about nothing else
// are removed, or moved to Options.Archive. The remaining segments verify by
// themselves, as the header of the first one has the hash of the line before it; and
// they verify together with the archived ones. All segments but the last can be copied
// at any time: they do not change, unless [Journal.Compress] makes them gzip files, which
// are read in place.
//
// # Costs
//
// Calls that wait for the disk at the same time share one write and one fsync. In
// memory the journal has about 190 bytes, the ID, and the reason of an abort for each
// changeset that was not pruned, and no entries. Open reads the last segment and, of each
// other one, some 180 bytes and the ID for each changeset that its header has. Load reads
// the entries of changesets that are neither applied nor aborted; those of others are read
// when somebody asks for them. Both need room for the longest lines, several at a time: a
// tracker puts up to 4,096 entries into one line, and always a whole batch. Validate
// encodes each entry, which writing it does once more.
//
// # The files
//
// A journal is a directory of segments, 0000000001.journal and so on. Only the last
// one grows. When it has [Options].SegmentSize, or at [Journal.Rotate], the next one
// begins. A segment is JSON, one object on each line. Its first line is a header; then
// comes one line for each call of the store that says something new (here without prev
// and hash, which all lines have):
//
//	{"line":1,"op":"journal","format":1,"journal":"…","segment":1,"ordinal":0,"id":"","previous":"","before":1,"gaps":[],"changesets":[]}
//	{"line":2,"op":"start","id":"…","ordinal":1,"previous":""}
//	{"line":3,"op":"append","id":"…","entries":[{"seq":0,"value":…},{"seq":1,"value":…}]}
//	{"line":4,"op":"seal","id":"…","len":2,"last":1}
//	{"line":5,"op":"abort","id":"…","reason":"…"}
//	{"line":6,"op":"applied","id":"…","next":18446744073709551615}
//	{"line":7,"op":"prune","before":2}
//	{"line":8,"op":"gap","segment":1,"ordinal":0,"sha256":"…","reason":"…"}
//
// Lines are numbered through all segments. A header names the journal, by random text
// that was made with it, and the changeset that was the latest one. It has a checkpoint:
// the state of each changeset that is neither applied nor aborted, or that the previous
// segment mentions, and where its entries are.
//
// The hash of a line is the SHA-256 of its bytes before ,"hash": in hexadecimal, and
// prev is the hash of the line before it: for the first one, 64 zeros. So a change of
// any byte shows, except of the last newline, which Open puts back. Two changes show
// only against a [Journal.Hash] that was kept elsewhere: lines that were cut off from
// the end at a newline, and a chain that somebody has made again. reader.Verify and the
// command check all that. Open checks the headers, the end of each segment, and the last one. The
// shell can check the chain of segments that are not compressed:
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
// DESIGN.md, beside this file, has the rules that lines keep, the remains of a crash,
// and the measured costs of opening.
package journal
