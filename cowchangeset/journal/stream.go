package journal

import (
	"errors"
	"fmt"
	"io"
)

// A stream reads segments, one after the other, as far as they had come when the
// stream was made.
type stream struct {
	from  source
	files []segment // that were not read yet; the first is open if file is not nil
	file  file
	at    int64
	live  bool // somebody may write the last one
}

func (s *stream) Read(p []byte) (int, error) {
	for {
		if len(s.files) == 0 {
			return 0, io.EOF
		}
		if s.file == nil {
			f, err := s.from.Open(s.files[0].name())
			if err != nil {
				return 0, err
			}
			s.file, s.at = f, 0
		}
		rest := s.files[0].size - s.at
		if rest == 0 {
			s.close()
			s.files = s.files[1:]
			continue
		}
		n, err := s.file.ReadAt(p[:min(int64(len(p)), rest)], s.at)
		s.at += int64(n)
		if n > 0 {
			return n, nil
		}
		if errors.Is(err, io.EOF) && s.live && len(s.files) == 1 {
			return 0, io.EOF // its writer has removed the remains of a failed write
		}
		if errors.Is(err, io.EOF) {
			err = fmt.Errorf("%s is shorter than it was: %w", s.files[0].name(), io.ErrUnexpectedEOF)
		}
		return 0, err
	}
}

func (s *stream) close() {
	if s.file != nil {
		s.file.Close()
		s.file = nil
	}
}

// list returns what segmentsOf does for the names in a folder, with the sizes of the
// segments.
func list(f folder) (files []segment, litter, strange []string, err error) {
	names, err := f.Names()
	if err != nil {
		return nil, nil, nil, fmt.Errorf("journal: %w", err)
	}
	files, litter, strange = segmentsOf(names)
	for i := range files {
		var is file
		if is, err = f.Open(files[i].name()); err == nil {
			files[i].size, err = is.Size()
			is.Close()
		}
		if err != nil {
			return nil, nil, nil, fmt.Errorf("journal: %w", err)
		}
	}
	return files, litter, strange, nil
}

// hasHole reports whether a segment is missing between others.
func hasHole(files []segment) bool {
	return len(files) > 0 && files[len(files)-1].number-files[0].number >= uint64(len(files))
}

// scanFiles returns a scanner of segments, and a function that ends it.
func scanFiles(from source, files []segment) (s *scanner, end func()) {
	_, live := from.(*view)
	in := &stream{from: from, files: files, live: live}
	s = scan(in, files)
	return s, func() {
		s.close()
		in.close()
	}
}
