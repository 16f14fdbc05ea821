package journal

import "io"

// Folder and File are what a journal needs of a directory and its files.
type (
	Folder = folder
	File   = file
)

// TestIdentity is what OpenOn gives to journals that it makes.
const TestIdentity = "test"

// OpenOn opens a journal in a folder that nobody else uses.
func OpenOn[E any](f Folder, o Options) (*Journal[E], error) {
	v, err := valuesOf[E](o)
	if err != nil {
		return nil, err
	}
	j := &Journal[E]{values: v}
	j.log.path = "memory"
	if err := j.log.begun(f, io.NopCloser(nil), o, TestIdentity); err != nil {
		return nil, err
	}
	return j, nil
}

// ReaderOn returns a Reader of a folder.
func ReaderOn[E any](f Folder, o Options) (*Reader[E], error) {
	return readerOf[E]("memory", o, func() (lister, error) { return f, nil })
}

// VerifyOn is Verify of a folder.
func VerifyOn(f Folder, since Anchor) (Report, error) { return verify(f, since) }

// RepairOn and the others are Repair, Examine and Undo of a folder that nobody else uses.
func RepairOn(f Folder) (Repaired, error) { return repair(f) }

func ExamineOn(f Folder) (Repaired, error) {
	p, err := examine(f)
	return p.Repaired, err
}

func UndoOn(f Folder) error { return undo(f) }

// Directory is a folder on a disk.
func Directory(path string) Folder { return directory{path: path} }

// Header is the first line of the first segment of a journal that OpenOn makes.
func Header() []byte {
	text, _ := (&line{op: opJournal, format: format, journal: TestIdentity, segment: 1, before: 1}).encode(nil, 1, noHash())
	return text
}

// SegmentName returns the name of a segment.
func SegmentName(number int) string { return fileName(uint64(number)) }

// Waiting returns how many calls wait for their turn.
func (j *Journal[E]) Waiting() int {
	j.log.mu.Lock()
	defer j.log.mu.Unlock()
	return len(j.log.queue)
}

// Buffer returns how much memory the journal keeps for what it writes.
func (j *Journal[E]) Buffer() int { return cap(j.log.buf) }
