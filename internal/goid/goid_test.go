package goid

import (
	"runtime"
	"sync"
	"testing"
)

func TestIDIsStableAndUnique(t *testing.T) {
	const goroutines = 100
	ids := make([]uint64, goroutines)
	var alive, done sync.WaitGroup
	alive.Add(goroutines)
	for i := range ids {
		done.Go(func() {
			alive.Done()
			alive.Wait() // all of them live at the same time
			ids[i] = ID()
			if again := ID(); again != ids[i] {
				t.Errorf("ID() = %d, then %d on the same goroutine", ids[i], again)
			}
		})
	}
	done.Wait()
	seen := map[uint64]bool{0: true, ID(): true}
	for _, id := range ids {
		if seen[id] {
			t.Errorf("id %d is zero or was given twice", id)
		}
		seen[id] = true
	}
}

func TestParse(t *testing.T) {
	for trace, want := range map[string]uint64{
		"goroutine 1 [running]:":                    1,
		"goroutine 184467 [running, locked]:":       184467,
		"goroutine 18446744073709551615 [running]:": 1<<64 - 1,
		"goroutine ":    0,
		"goroutine x":   0,
		"gorou":         0,
		"":              0,
		"fiber 7 [run]": 0,
	} {
		if got := parse([]byte(trace)); got != want {
			t.Errorf("parse(%q) = %d, want %d", trace, got, want)
		}
	}
}

// A token is that of the goroutine, wherever its stack is.
func TestToken(t *testing.T) {
	known := runtime.GOARCH == "amd64" || runtime.GOARCH == "arm64"
	const goroutines = 100
	tokens := make([]uintptr, goroutines)
	var alive, done sync.WaitGroup
	alive.Add(goroutines)
	for i := range tokens {
		done.Go(func() {
			tokens[i] = Token()
			alive.Done()
			alive.Wait() // all of them live at the same time
			if again := deep(1000); again != tokens[i] {
				t.Errorf("Token() = %#x, then %#x on the same goroutine", tokens[i], again)
			}
		})
	}
	done.Wait()
	seen := map[uintptr]bool{}
	for _, token := range tokens {
		if (token != 0) != known || known && seen[token] {
			t.Errorf("token %#x is zero or was given twice", token)
		}
		seen[token] = true
	}
}

// deep makes the stack grow, and so move.
func deep(n int) uintptr {
	var buffer [512]byte
	if n == 0 || buffer[n%512] != 0 {
		return Token()
	}
	return deep(n - 1)
}
