package broken

import (
	"os"
	"strconv"
)

// Choice is the environment's variable that chooses a mutant of a program that
// contains many.
const Choice = "LATCHFREE_MUTANT"

// Chosen is the number of the mutant that the program is to be: 0 for none.
var Chosen = func() int {
	n, _ := strconv.Atoi(os.Getenv(Choice)) // unset is none
	return n
}()
