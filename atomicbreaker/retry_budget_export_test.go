package atomicbreaker

// Spend takes n tokens at once, which is what n retries do at one moment.
func (b *RetryBudget) Spend(n int) {
	s := b.settings()
	w := tokenWord(b.word.Load())
	b.word.Store(s.now()<<sinceShift | (w.spentAt(s, s.now()) + uint64(n)*wholeToken))
}

// Missing returns how many thousandths of a token the word says are missing.
func (b *RetryBudget) Missing() int { return int(tokenWord(b.word.Load()).spent()) }
