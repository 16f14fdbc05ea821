package chain

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Anchor is a line of a journal and its hash. Two journals that have one in common have
// the same lines up to there. The zero Anchor is before the first line.
type Anchor struct {
	Line int    // in the journal, whose first line is 1
	Hash string // in hexadecimal
}

// String returns the line and the hash, with a colon between them.
func (a Anchor) String() string { return fmt.Sprintf("%d:%s", a.Line, a.Hash) }

// ParseAnchor returns the Anchor of a text that String has made.
func ParseAnchor(text string) (Anchor, error) {
	number, hash, ok := strings.Cut(text, ":")
	n, err := strconv.Atoi(number)
	if !ok || err != nil || n < 0 || strconv.Itoa(n) != number || len(hash) != len(Digest{}) || strings.Trim(hash, "0123456789abcdef") != "" {
		return Anchor{}, fmt.Errorf("journal: %q is not a line number, a colon and a hash of 64 hexadecimal digits", text)
	}
	return Anchor{Line: n, Hash: hash}, nil
}

// ErrDropped: the line is in a segment that was dropped, or archived.
var ErrDropped = errors.New("journal: the line was dropped")

// A witness looks for an anchor among the lines of a scanner.
type witness struct {
	Anchor
	found bool
}

// look looks at the last line that s has read.
func (w *witness) look(s *Scanner) error {
	hash := s.Hash
	switch {
	case w.Line == s.start && s.Read > 0: // the line before the first one
		hash = s.before
	case w.Line != s.Number:
		return nil
	}
	w.found = true
	if w.Line > 0 && w.Hash != hash.String() {
		return &CorruptError{Line: w.Line, Reason: fmt.Sprintf("its hash is %v, and not %s as it was", hash, w.Hash)}
	}
	return nil
}

// missing returns why the anchor was not found, or nil if it was, at the end of s.
func (w *witness) missing(s *Scanner) error {
	switch {
	case w.found || w.Line == 0:
		return nil
	case w.Line > s.Number:
		return s.corrupt(fmt.Sprintf("the journal ends here, and had a line %d", w.Line))
	}
	return ErrDropped
}
