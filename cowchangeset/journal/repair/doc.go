// Package repair makes damaged journals of package journal whole again, but for what is
// damaged: it takes segments out, and says so in the journal.
//
// [Examine] says what [Repair] would do, and [Undo] takes the last repair back.
package repair
