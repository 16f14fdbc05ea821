//go:build modelcheck

package mc

import (
	"fmt"
	"runtime"
	"strings"
	"unsafe"
)

// note describes a step of a recorded execution.
type note struct {
	text string // what was done, without the word
	at   string // where in the source
}

// Note describes the step just taken. Text is called only while the execution is being
// described, also where there is no step, so that what it labels is numbered.
//
//go:norace
func Note(text func() string) {
	if m := active; m != nil && m.recording {
		if text := text(); m.phase == running {
			m.notes[len(m.notes)-1].text = text
		}
	}
}

// Label returns a short name for a pointer's value: the same in every replay,
// which an address is not.
func Label(p unsafe.Pointer) string {
	m := active
	if p == nil || m == nil {
		return "nil"
	}
	if name := m.names[p]; name != "" {
		return "&" + name
	}
	return fmt.Sprintf("p%d", m.words.number(p))
}

// where returns the position of the innermost caller outside the seam, if any.
func where() string {
	var pcs [16]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	for {
		f, more := frames.Next()
		if !more { // package runtime, where goroutines begin
			return ""
		}
		if f.Line > 1 && !inSeam(f.File) {
			return shorten(f.File) + fmt.Sprintf(":%d", f.Line)
		}
	}
}

// inSeam reports whether a file belongs to the model rather than to what is
// modelled.
func inSeam(file string) bool {
	if strings.HasSuffix(file, "_test.go") {
		return false
	}
	for _, dir := range []string{"/internal/tools/mc/", "/internal/atomics/", "/internal/table/"} {
		if strings.Contains(file, dir) {
			return true
		}
	}
	return false
}

// shorten keeps a file's folder and name.
func shorten(file string) string {
	i := strings.LastIndexByte(file, '/')
	return file[strings.LastIndexByte(file[:max(i, 0)], '/')+1:]
}

// table prints the recorded execution: time goes down, a column is a thread.
func (m *M) table() string {
	texts := make([]string, len(m.trace))
	width := 2
	for i, s := range m.trace {
		texts[i] = m.text(&s, m.notes[i])
		if s.thread >= 0 {
			width = max(width, len(texts[i]))
		}
	}
	width += 2
	var b strings.Builder
	for i := range m.threads {
		if i > 0 {
			b.WriteString(strings.Repeat(" ", width-len(fmt.Sprint("T", i-1))))
		}
		fmt.Fprint(&b, "T", i)
	}
	b.WriteByte('\n')
	for i, s := range m.trace {
		column := max(s.thread, 0)
		fmt.Fprintf(&b, "%*s%-*s%s\n", column*width, "", (len(m.threads)-column)*width, texts[i], m.notes[i].at)
	}
	for _, t := range m.threads {
		if !t.finished && t.next.blocks && !t.next.enabled() {
			s := step{pending: t.next, thread: t.id}
			fmt.Fprintf(&b, "%*s%-*s%s\n", t.id*width, "", (len(m.threads)-t.id)*width, m.text(&s, note{text: t.verb + "() waits for ever"}), t.at)
		}
	}
	return b.String()
}

func (m *M) text(s *step, n note) string {
	if s.thread < 0 {
		return "body: " + n.text
	}
	if s.on.word == 0 {
		return n.text
	}
	if m.words.is(s.on.word, unsafe.Pointer(&m.tick)) {
		return n.text // when an operation begins or ends is a word of nobody's
	}
	for p, name := range m.names {
		if m.words.is(s.on.word, p) {
			return name + "." + n.text
		}
	}
	return fmt.Sprintf("w%d.%s", s.on.word, n.text)
}

// is reports whether word is the number of p.
func (w *words) is(word int32, p unsafe.Pointer) bool {
	i := w.find(p)
	return w.addr[i] == p && w.num[i] == word
}
