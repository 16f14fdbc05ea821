package retrybudget

// Spend takes n tokens at once, which is what n retries do at one moment.
func (b *Budget) Spend(n int) {
	s := b.settings()
	w := tokenWord(b.word.Load())
	b.word.Store(s.now()<<sinceShift | (w.spentAt(s, s.now()) + uint64(n)*wholeToken))
}

// Missing returns how many thousandths of a token the word says are missing.
func (b *Budget) Missing() int { return int(tokenWord(b.word.Load()).spent()) }
