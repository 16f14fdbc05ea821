package shardedregistry

import "unsafe"

// Gaps returns how many bytes are between a record and its value, for each of what
// a record may have besides.
func Gaps[V any]() [8]uintptr {
	return [8]uintptr{
		gap[record, V](), gap[datedRecord, V](), gap[indexedRecord, V](), gap[datedIndexedRecord, V](),
		gap[recordedRecord, V](), gap[datedRecordedRecord, V](), gap[indexedRecordedRecord, V](), gap[datedIndexedRecordedRecord, V](),
	}
}

// gap is of a record that its head ends with.
func gap[H, V any]() uintptr {
	var b boxed[H, V]
	return unsafe.Offsetof(b.value) - unsafe.Sizeof(b.head)
}

// TransactionSize returns the size of a transaction of two keys.
func TransactionSize() uintptr { return unsafe.Sizeof(Tx[string, int]{}) }
