package atomicbreaker

import (
	"reflect"
	"strings"
	"unsafe"
)

// A keyPacking is how a key travels in a Permit, which has no type parameter: in a
// pointer and 64 bits. Which it is follows from the kind of the key, and from the
// permit: those that say when their calls began carry keys in another way.
type keyPacking uint8

const (
	packBoxed       keyPacking = iota // the pointer leads to a copy on the heap
	packTimed                         // the same, and the bits say when the call began; see permit.go
	packTimedString                   // the same, or as packString if the string is short enough
	packBits                          // the bits are the key, and the pointer is nil
	packString                        // the pointer leads to the bytes, the bits are their number
)

// A timed string has 1 + its length beside the time in the bits, or 0 if it is
// too long for that.
const (
	timedLenShift = begunBits
	maxTimedLen   = 1<<(slotShift-timedLenShift) - 2
)

// In the bits of a permit for an absent key, unless they are the key: slotShift
// is above all lengths of strings that an address space can hold. From there on is
// 1 + the key's slot of the filter, or 0 if that is not known. absentTimed says that
// lower bits are when the call began.
const (
	slotShift   = 48
	slotField   = 1<<(filterBits+1) - 1
	absentTimed = 1 << 61
)

// absentPermit returns a permit for a key that was absent when now was the last departure.
func absentPermit[K comparable](how keyPacking, k K, now *departure, slot uint64) Permit {
	p := Permit{since: now}
	p.key, p.bits = pack(how, k)
	if how != packBits {
		p.bits |= slot << slotShift
	}
	return p
}

// stringPermit is absentPermit for packString. It is small enough to be inlined.
func stringPermit[K comparable](k K, now *departure, slot uint64) Permit {
	// Safety: K's kind is string, so a K is laid out like a string.
	s := *(*string)(unsafe.Pointer(&k))
	return Permit{since: now, key: unsafe.Pointer(unsafe.StringData(s)), bits: uint64(len(s)) | slot<<slotShift}
}

// slot returns 1 + the filter slot of the key of a permit for an absent key, or 0
// if the permit does not say.
func (p Permit) slot(how keyPacking) uint64 {
	if how == packBits {
		return 0
	}
	return p.bits >> slotShift & slotField
}

// packingOf returns how keys of type K travel, without the time.
func packingOf[K comparable]() keyPacking {
	switch reflect.TypeFor[K]().Kind() {
	case reflect.String:
		return packString
	case reflect.Bool, reflect.Float32, reflect.Float64,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return packBits
	}
	return packBoxed
}

// timed returns how a key travels with the time that would travel like c without
// it.
func (p keyPacking) timed() keyPacking {
	if p == packString {
		return packTimedString
	}
	return packTimed
}

// tellsTime reports whether a permit for an absent key, which would travel like c
// without the time, says when its call began.
func (p Permit) tellsTime(c keyPacking) bool {
	if c == packBits {
		return p.key != nil
	}
	return p.bits&absentTimed != 0
}

// packing returns how the key of a permit for an absent key travels, that would
// travel like c without the time.
func (p Permit) packing(c keyPacking) keyPacking {
	if p.tellsTime(c) {
		return c.timed()
	}
	return c
}

// pack takes a key apart. How must be what packingOf[K] returns, or that with the
// time.
func pack[K comparable](how keyPacking, k K) (p unsafe.Pointer, bits uint64) {
	switch how {
	case packTimedString:
		if p, bits = pack(packString, k); bits <= maxTimedLen {
			return p, (1+bits)<<timedLenShift | absentTimed
		}
		return box(k), absentTimed
	case packTimed:
		return box(k), absentTimed
	case packString:
		// Safety: K's kind is string, so a K is laid out like a string.
		s := *(*string)(unsafe.Pointer(&k))
		return unsafe.Pointer(unsafe.StringData(s)), uint64(len(s))
	case packBits:
		// Safety: K's kind has at most 64 bits and no pointers, and bits is
		// aligned for all such kinds.
		*(*K)(unsafe.Pointer(&bits)) = k
		return nil, bits
	}
	return box(k), 0
}

// box is apart from pack because it moves k to the heap, which other kinds of
// keys must not pay for.
//
//go:noinline
func box[K comparable](k K) unsafe.Pointer {
	// Safety: unpack converts back to the same type.
	return unsafe.Pointer(&k)
}

// unpack puts a key together again that pack took apart.
func unpack[K comparable](how keyPacking, p unsafe.Pointer, bits uint64) (k K) {
	switch how {
	case packTimedString:
		if n := bits << (64 - slotShift) >> (64 - slotShift + timedLenShift); n != 0 {
			return unpack[K](packString, p, n-1)
		}
	case packString:
		// Safety: pack took p and bits from a string that lives as long as p,
		// and K is laid out like a string.
		s := unsafe.String((*byte)(p), int(bits&(1<<slotShift-1)))
		return *(*K)(unsafe.Pointer(&s))
	case packBits:
		// Safety: see pack.
		return *(*K)(unsafe.Pointer(&bits))
	}
	// Safety: box made p from a *K.
	return *(*K)(p)
}

// own returns a key to be stored, which pins nothing that it was cut from.
func (ks *keyedState[K]) own(k K) K {
	if ks.packing != packString {
		return k
	}
	// Safety: K's kind is string, so a K is laid out like a string.
	s := strings.Clone(*(*string)(unsafe.Pointer(&k)))
	return *(*K)(unsafe.Pointer(&s))
}
