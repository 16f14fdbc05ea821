package chain

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/latchfree/latchfree/internal/folder"
	"github.com/latchfree/latchfree/internal/folder/foldertest"
)

// failing is a folder in which one file cannot be opened.
type failing struct {
	*foldertest.Memory
	name string
	err  error
}

func (f failing) Open(name string) (folder.File, error) {
	if name == f.name {
		return nil, f.err
	}
	return f.Memory.Open(name)
}

// A view that cannot be opened leaves no file open: neither after an error, nor when a segment has
// vanished and it looks again.
func TestOpenViewClosesWhatItOpened(t *testing.T) {
	for _, err := range []error{errors.New("denied"), fs.ErrNotExist} {
		m := new(foldertest.Memory)
		for i := range uint64(3) {
			m.Put(FileName(i+1), []byte("x"))
		}
		if v, got := OpenView(failing{m, FileName(3), err}, 0); v != nil || !errors.Is(got, err) {
			t.Fatalf("OpenView: %v, %v; want %v", v, got, err)
		}
		if !m.Closed() {
			t.Fatalf("%v: a file is still open", err)
		}
	}
}
