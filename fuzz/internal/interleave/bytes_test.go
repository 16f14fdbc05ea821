//go:build modelcheck

package interleave

import (
	"fmt"
	"testing"
)

// numbered decodes operations whose name is all there is to them; odd arguments
// take the next one inside.
func numbered(code Code, id int, inside func() (Op[int, int], bool)) Op[int, int] {
	o := Op[int, int]{Name: fmt.Sprintf("%d(%d) #%d", code.Op, code.Arg, id)}
	if code.Arg%2 == 1 {
		if inner, ok := inside(); ok {
			o.Name += " with " + inner.Name
		}
	}
	return o
}

func TestDecode(t *testing.T) {
	for _, tt := range []struct {
		program string
		ok      bool
		want    string
	}{
		{"", false, "\tfirst: \n"},
		{"\x01\x02", false, "\tfirst: 1(2) #1\n"},
		{"\x41\x02\x42\x04", false, "\tfirst: \n\tT0: 1(2) #9; 2(4) #10\n"},
		{"\x41\x02\xc2\x04\x00\x06\x01", true, "\tfirst: 0(6) #1\n\tT0: 1(2) #9\n\tT1: 2(4) #25\n"},
		{"\x41\x03\x42\x05\x43\x00\x81\x01", true, "\tfirst: \n\tT0: 1(3) #9 with 2(5) #10 with 3(0) #11\n\tT1: 1(1) #17\n"},
		{"\x41\x00\x42\x00\x43\x00\x44\x00\x81\x00", true, "\tfirst: \n\tT0: 1(0) #9; 2(0) #10; 3(0) #11\n\tT1: 1(0) #17\n"},
	} {
		p, ok := Decode([]byte(tt.program), numbered)
		if got := p.String(); ok != tt.ok || got != tt.want {
			t.Errorf("Decode(%q) = %v, %v, want\n%v, %v", tt.program, got, ok, tt.want, tt.ok)
		}
	}
}

// Whatever comes, identifiers are distinct and below 90.
func TestIdentifiers(t *testing.T) {
	seen := map[int]bool{}
	program := make([]byte, 1000)
	for i := range program {
		program[i] = byte(i / 2 << 6)
	}
	p, _ := Decode(program, func(_ Code, id int, _ func() (Op[int, int], bool)) (o Op[int, int]) {
		if seen[id] || id < 1 || id >= 90 {
			t.Errorf("identifier %d", id)
		}
		seen[id] = true
		return o
	})
	if len(p.Threads) != 3 || len(seen) != len(p.Prelude)+9 {
		t.Errorf("%d threads, %d operations", len(p.Threads), len(seen))
	}
}
