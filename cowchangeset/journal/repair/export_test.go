package repair

import (
	"github.com/latchfree/latchfree/internal/folder"
)

// RepairOn and the others are Repair, Examine and Undo of a folder that nobody else uses.
func RepairOn(f folder.Folder) (Repaired, error) { return repair(folder.Gzip{Folder: f}) }

func ExamineOn(f folder.Folder) (Repaired, error) {
	p, err := examine(folder.Gzip{Folder: f})
	return p.Repaired, err
}

func UndoOn(f folder.Folder) error { return undo(folder.Gzip{Folder: f}) }
