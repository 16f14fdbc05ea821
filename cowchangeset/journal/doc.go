// Package journal keeps changesets in a file.
//
// A [Journal] is a Store of package cowchangeset. A tracker that has one is
// resumed where it was when the process ended, however it ended:
//
//	j, err := journal.Open[Change]("changes.journal", journal.Options{})
//	tracker, err := cowchangeset.Resume(ctx, cowchangeset.Config[Change]{Store: j})
//
// # The file
//
// It is JSON, one object on each line, and only grows. The first line is the
// header. After it comes one line for each call of the store that says something
// new (here without prev and hash, which all lines have):
//
//	{"line":1,"op":"journal","format":1}
//	{"line":2,"op":"start","id":"…","ordinal":1,"previous":""}
//	{"line":3,"op":"append","id":"…","entries":[{"seq":0,"value":…},{"seq":1,"value":…}]}
//	{"line":4,"op":"seal","id":"…","len":2,"last":1}
//	{"line":5,"op":"abort","id":"…","reason":"…"}
//	{"line":6,"op":"applied","id":"…","next":18446744073709551615}
//
// Values are as encoding/json makes them. They must survive that: what is not
// UTF-8 becomes U+FFFD, and a field that is not exported is lost.
//
// The hash of a line is the SHA-256 of its bytes before ,"hash": in hexadecimal,
// and prev is the hash of the line before it: for the first one, 64 zeros. So a
// change of any byte shows. [Verify] checks a file, and so does the shell:
//
//	prev=$(printf %064d 0) n=0
//	while IFS= read -r line; do
//		n=$((n+1)) body=${line%,\"hash\":*}
//		hash=$(printf %s "$body" | sha256sum | cut -c 1-64)
//		case $line in
//		"{\"line\":$n,"*",\"prev\":\"$prev\",\"hash\":\"$hash\"}") prev=$hash ;;
//		*) echo "line $n is corrupt"; break ;;
//		esac
//	done < changes.journal
//
// The chain finds accidents, and changes by people who do not know of it. Others
// can make all hashes anew: to find that, keep the last hash elsewhere.
//
// # What survives
//
// A call that has returned nil has its line in the file and, with [SyncAlways],
// on the disk. One call of Append is one line, and thus survives whole or not at
// all.
//
// If the process ends within a write, the last line may be cut off. Open removes
// it: see [Journal.Recovered]. If the machine crashes, the disk may have any part
// of what was not yet synced. Mostly that is a cut-off line too. But if the disk
// has a later part without an earlier one, it is a line that is not as it was
// written, and Open cannot tell that from damage done to the file at rest: it
// returns a [CorruptError]. All before its Offset is good; cutting the file there
// is for a person to decide. With SyncAlways, no call had returned nil for what a
// crash damaged.
//
// # What fails
//
// A write that fails, as on a full disk, fails the calls that it was for. What it
// left in the file is removed before anything else is written.
//
// When fsync fails, the journal is broken: all later calls return the same error,
// which matches [ErrBroken], until the file is opened again. The same goes for a
// failed write whose remains cannot be removed. After a failed fsync some kernels
// show what they could not write to the disk, as long as they have it in memory,
// and forget that they could not. So the file may seem to have more, when it is
// opened again, than after a crash of the machine. Find out what is wrong with
// the disk first.
//
// # Costs
//
// Calls that wait for the disk at the same time share one write and one fsync. In
// memory the journal has about 130 bytes and the ID for each changeset, and no
// entries. Open and Load read the whole file, and need room for its longest
// line. The file is never made smaller: begin another one when no changeset of it
// is needed any more.
//
// DESIGN.md, beside this file, has the rules that lines keep, and what a crash
// can leave.
package journal
