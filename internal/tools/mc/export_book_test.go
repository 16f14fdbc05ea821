//go:build modelcheck

package mc

import "testing"

// Book is a book that a test keeps.
type Book struct{ *book }

// KeepBook keeps a book during f, as under Main, and returns it.
func KeepBook(f func()) Book {
	b := newBook()
	current = b
	defer func() { current = nil }()
	f()
	return Book{b}
}

// Problems are what makes a run fail.
func (b Book) Problems() []string { return b.problems }

// Page prints the book.
func (b Book) Page(t *testing.T) string {
	p, err := b.page()
	if err != nil {
		t.Fatal(err)
	}
	return p.String()
}

// Difference lists the lines that only one of two texts has.
var Difference = difference

// KeepBookBeside is KeepBook where a page is committed.
func KeepBookBeside(page string, f func()) Book {
	b := newBook()
	b.read, b.committed = true, []byte(page)
	current = b
	defer func() { current = nil }()
	f()
	return Book{b}
}
