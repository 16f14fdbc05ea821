// The consumer imports the four packages as users do. It counts what calls of
// them allocate, and exits with 1 if a call allocates more or less than promised.
package main

import (
	"fmt"
	"os"
	"testing"

	"example.com/consumer/direct"
	"example.com/consumer/functions"
	"example.com/consumer/through"
)

func main() {
	fmt.Println(len(operations), "operations")
	all := append(direct.Shapes(), through.Shapes()...)
	all = append(all, functions.Shapes()...)
	wrong := 0
	for _, s := range all {
		if got := testing.AllocsPerRun(100, s.Call); got != s.Allocs {
			fmt.Printf("%s: %v allocations, want %v\n", s.Name, got, s.Allocs)
			wrong++
		}
	}
	fmt.Println(len(all), "shapes")
	if wrong > 0 {
		os.Exit(1)
	}
}
