// Package interleave turns bytes into small concurrent programs, runs them in
// every order of their steps on shared words, and asks whether a sequential
// model explains what they saw. It is what the fuzz targets under the build tag
// modelcheck share; without the tag it is empty.
//
// A program is a prelude, two or three threads of up to three operations, and
// what is looked at when they are done. An operation takes effect at one moment
// between its call and its return, or at several: a creation takes effect when
// it begins and when it ends, a loop at one moment for each key. An execution
// is right if its moments can be put into an order in which the model sees the
// same, and in which what was over before something else began comes first.
package interleave
