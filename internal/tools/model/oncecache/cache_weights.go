package model

// weight returns the weight of what k has; that of an error is zero.
func (o *Owner) weight(k int) int64 {
	if v, ok := o.ready[k]; ok && o.Weight != nil {
		return o.Weight(v)
	}
	return 0
}

// TotalWeight returns the weight of all that is there.
func (o *Owner) TotalWeight() (sum int64) {
	for _, p := range o.places {
		sum += o.weight(p.key)
	}
	return sum
}

// heavy reports whether v is not kept because it weighs too much.
func (o *Owner) heavy(v int) bool { return o.Weight != nil && o.Weight(v) > o.MaxWeight }

// full reports whether something must go.
func (o *Owner) full() bool {
	return o.MaxEntries > 0 && len(o.places) > o.MaxEntries || o.Weight != nil && o.TotalWeight() > o.MaxWeight
}
