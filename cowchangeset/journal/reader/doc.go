// Package reader reads journals of package journal from elsewhere, also while they are
// written.
//
// A [Reader] yields the changesets of a journal, or one of them, or what happened, line by
// line; it follows a journal that grows. [Verify] checks all lines.
//
//	r, err := reader.Open[Change]("changes", reader.Options{})
//	…
//	for e, err := range r.Follow(ctx, 0) {
//		if err != nil {
//			return err // of ctx, of the files, or a value that cannot be decoded
//		}
//		if e.Kind == reader.Appended { … }
//	}
package reader
