// Package table has the tables of the library: Table, a concurrent map from keys
// to pointers, and Cells, a set of cells that hold their keys. It is the only
// place that touches xsync/v3, on which Table stands; Cells is a table of our
// own, see DESIGN.md. Under the build tag modelcheck both are models instead, of
// what this package promises.
//
// The pointers are identities: a table never copies what they point to, and
// the conditional operations compare pointers. Everything mutable lives in
// the pointed-to cells and is changed there by CAS, outside any lock of the
// table.
package table
