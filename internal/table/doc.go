// Package table is a concurrent map from keys to pointers, and the only place
// in the library that touches xsync/v3. Under the build tag modelcheck it is a
// model instead, of what this package promises rather than of xsync.
//
// The pointers are identities: a table never copies what they point to, and
// the conditional operations compare pointers. Everything mutable lives in
// the pointed-to cells and is changed there by CAS, outside any lock of the
// table.
package table
