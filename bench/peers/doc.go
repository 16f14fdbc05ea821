// Package peers runs other libraries beside latchfree, under the names that
// the benchmarks in package bench use: the same keys, the same streams, the
// same functions. It is a module of its own, so that none of them reaches an
// importer of latchfree.
//
// There is one file per peer of the benchmarks. It says which version, how it
// is configured to do the same observable work, and what it does differently.
// What programs write for themselves is in homemade.
// README.md has the table. FromGobreaker and FromFailsafe turn settings of these
// into ours, row by row of docs/coming-from-breakers.md.
package peers
