// Package repair makes a damaged journal of package journal usable again: it removes
// damaged segments, and records in the journal that they are missing.
//
// Close the journal first. [Examine] says what would be lost; [Repair] does it, and sets
// each file aside that it removes or changes. Then open the journal. [Undo] reverts a repair
// as long as nothing was written since.
package repair
