//go:build modelcheck && !race

package mc

func raceOff() {}

func raceOn() {}

func raceErrors() int { return 0 }
