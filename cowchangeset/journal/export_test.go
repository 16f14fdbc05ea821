package journal

// File is what a journal needs of a file.
type File = file

// OpenOn opens a journal on a file that has the given size.
func OpenOn[E any](f File, size int64, o Options) (*Journal[E], error) {
	return open[E](f, size, o)
}

// Header is the first line of each file.
func Header() []byte { return header() }

// Waiting returns how many calls wait for their turn.
func (j *Journal[E]) Waiting() int {
	j.log.mu.Lock()
	defer j.log.mu.Unlock()
	return len(j.log.queue)
}

// Buffer returns how much memory the journal keeps for what it writes.
func (j *Journal[E]) Buffer() int { return cap(j.log.buf) }

// Claim is what Open does to a file that it has opened.
var Claim = claim
