// Package simulated counts the cache lines that an operation moves between cores, on
// more cores than the machine has: see README.md beside this file. Its tests, built with
// -tags modelcheck, run the four packages and locked code side by side.
package simulated
