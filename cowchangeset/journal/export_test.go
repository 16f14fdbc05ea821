package journal

// Buffer returns how much memory the journal keeps for what it writes.
func (j *Journal[E]) Buffer() int { return cap(j.log.buf) }
