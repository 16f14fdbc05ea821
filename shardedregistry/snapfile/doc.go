// Package snapfile saves a [shardedregistry.Registry] in a file, and makes a registry
// of that again, with all versions. So a service starts with what it knew:
//
//	plans, err := snapfile.Load("plans.snap", config, snapfile.Format[string, Plan]{})
//	if errors.Is(err, fs.ErrNotExist) {
//		plans, err = shardedregistry.New(config)
//	}
//	…
//	err = snapfile.Save("plans.snap", plans, snapfile.Format[string, Plan]{})
//
// [Save] replaces the file at once: whatever happens meanwhile, also to the machine,
// the path names the old file or the new one, and each is whole. When Save has
// returned, it is the new one. [Load] returns what was saved, or an error and nothing:
// a file that is cut off, damaged or of another kind gives a [*CorruptError] that names
// the first byte that is not good. [Write] and [Read] do the same with a stream.
//
// What is saved is one instant of the registry, a [shardedregistry.Snapshot]. Nobody
// waits for it. What changes later is in the next file. Versions of changes that are
// in no file may be given again to other changes after a restart, so a client must not
// keep versions across one, unless the last Save came after all changes, or each run
// begins above the versions of the one before: see the example of a restart.
//
// Saved are keys as they are stored, values and versions. The settings are those that
// are given to Load, whose functions accept each key and value, or Load fails. What a
// registry keeps beside entries is not saved: watchers, the spelling by which a key was
// created, and deadlines. Config.TTL gives each entity a new one.
//
// # The file
//
// Numbers are little-endian. A checksum is the CRC-32C of all bytes of the file that
// come before it, without other checksums. So it finds entries that are missing,
// repeated, or out of order, too. It finds accidents, and not intent: whoever can write
// the file can make its checksums anew.
//
//	offset  size
//	     0     8  89 4C 46 53 0D 0A 1A 0A
//	     8     4  1, the format
//	    12     8  the number of entries
//	    20     8  last: a key that is not among the entries begins above this version
//	    28     4  checksum
//	    32        entries, in any order:
//	           4    the length of the key, at most 2^30
//	           4    the length of the value, at most 2^30
//	           8    the version
//	                the key, and the value, as their Codec encodes them
//	           4    checksum
//
// The file ends with its last entry.
package snapfile
