// Package scenes has what tests that generate their cases share: choices of settings in which
// each two levels meet, and how cases are drawn and spread.
package scenes

import (
	"fmt"
	"os"
	"strconv"
)

// Pairwise takes the number of levels of each setting. It returns a few choices of one level for
// each setting, in which each two levels of two settings are together somewhere.
func Pairwise(levels []int) (rows [][]int) {
	type pair struct{ s, level, t, other int }
	left := map[pair]bool{}
	for t := range levels {
		for s := range t {
			for i := range levels[s] {
				for j := range levels[t] {
					left[pair{s, i, t, j}] = true
				}
			}
		}
	}
	gain := func(row []int, t, level int) (n int) {
		for s, i := range row {
			if i >= 0 && s != t {
				a, b := pair{s, i, t, level}, pair{t, level, s, i}
				if left[a] || left[b] {
					n++
				}
			}
		}
		return n
	}
	for len(left) > 0 {
		row := make([]int, len(levels))
		for s := range row {
			row[s] = -1
		}
		// A pair that is left, the first in order, and then the best for each other setting.
		var from pair
		best := ""
		for p := range left {
			if name := fmt.Sprintf("%02d%02d%02d%02d", p.s, p.t, p.level, p.other); best == "" || name < best {
				best, from = name, p
			}
		}
		row[from.s], row[from.t] = from.level, from.other
		for t := range levels {
			if row[t] >= 0 {
				continue
			}
			most := -1
			for i := range levels[t] {
				level := (i + len(rows)) % levels[t] // so that equal ones take turns
				if n := gain(row, t, level); n > most {
					most, row[t] = n, level
				}
			}
		}
		for t := range levels {
			for s := range t {
				delete(left, pair{s, row[s], t, row[t]})
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// Alone returns the choices in which at most one setting has another level than its first.
func Alone(levels []int) (rows [][]int) {
	rows = append(rows, make([]int, len(levels)))
	for s, n := range levels {
		for i := 1; i < n; i++ {
			row := make([]int, len(levels))
			row[s] = i
			rows = append(rows, row)
		}
	}
	return rows
}

// Dice is SplitMix64.
type Dice struct{ state uint64 }

// Throw returns the dice of a case, which are others for each seed.
func Throw(i int, seed uint64) Dice { return Dice{uint64(i)*0x9e3779b97f4a7c15 ^ seed<<1} }

// Below returns a number below n.
func (d *Dice) Below(n int) int {
	d.state += 0x9e3779b97f4a7c15
	z := d.state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return int((z ^ z>>31) % uint64(n))
}

// Stride returns a number by whose multiples all of [0, n) are reached, far apart.
func Stride(n int) int {
	gcd := func(a, b int) int {
		for b != 0 {
			a, b = b, a%b
		}
		return a
	}
	c := int(float64(n) * 0.6180339887)
	for gcd(c, n) != 1 {
		c++
	}
	return c
}

// Number reads a number of the environment.
func Number(variable string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(variable)); err == nil {
		return n
	}
	return otherwise
}
