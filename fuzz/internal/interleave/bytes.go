//go:build modelcheck

package interleave

// Code is an operation as bytes: which one, below 64, and an argument.
type Code struct{ Op, Arg byte }

// What a program may have at most. More operations are left out, so that every
// input stays a program that can be explored.
const (
	maxPrelude = 8
	maxThread  = 3
	maxLength  = 2 * (maxPrelude + 3*maxThread)
)

// Decoder makes the operation that a code stands for. Its id is positive, below
// 90, and no other operation's of the program. Inside makes the operation that
// comes next in the same thread, for use within this one; false if there is
// none.
type Decoder[R, S any] func(code Code, id int, inside func() (Op[R, S], bool)) Op[R, S]

// Decode makes the program of the given bytes. Each two of them are an
// operation: the upper two bits of the first say where it goes, to the prelude
// or to one of three threads, and the others which it is; the second is its
// argument. False means that no two threads have anything to do.
func Decode[R, S any](program []byte, decode Decoder[R, S]) (p Program[R, S], ok bool) {
	var lanes [4][]Code
	program = program[:min(len(program), maxLength)]
	for ; len(program) >= 2; program = program[2:] {
		lane, limit := program[0]>>6, maxThread
		if lane == 0 {
			limit = maxPrelude
		}
		if len(lanes[lane]) < limit {
			lanes[lane] = append(lanes[lane], Code{program[0] & 63, program[1]})
		}
	}
	for lane, codes := range lanes {
		ops := decodeLane(codes, lane*maxPrelude, decode)
		if lane == 0 {
			p.Prelude = ops
		} else if len(ops) > 0 {
			p.Threads = append(p.Threads, ops)
		}
	}
	return p, len(p.Threads) >= 2
}

func decodeLane[R, S any](codes []Code, ids int, decode Decoder[R, S]) (ops []Op[R, S]) {
	i := 0
	var inside func() (Op[R, S], bool)
	inside = func() (o Op[R, S], ok bool) {
		if i == len(codes) {
			return o, false
		}
		i++
		return decode(codes[i-1], ids+i, inside), true
	}
	for {
		o, ok := inside()
		if !ok {
			return ops
		}
		ops = append(ops, o)
	}
}
