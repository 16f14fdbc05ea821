package breakerhttp

import (
	"bufio"
	"io"
	"net"
	"net/http"
)

// The abilities that an http.ResponseWriter may have besides its own methods.
const (
	flushes = 1 << iota
	flushesOrFails
	hijacks
	readsFrom
	writesStrings
	pushes
	notifiesClose

	likeHTTP1 = flushes | flushesOrFails | hijacks | readsFrom | writesStrings | notifiesClose
	likeHTTP2 = flushes | flushesOrFails | writesStrings | pushes | notifiesClose
)

func abilities(w http.ResponseWriter) (can uint) {
	if _, ok := w.(http.Flusher); ok {
		can |= flushes
	}
	if _, ok := w.(interface{ FlushError() error }); ok {
		can |= flushesOrFails
	}
	if _, ok := w.(http.Hijacker); ok {
		can |= hijacks
	}
	if _, ok := w.(io.ReaderFrom); ok {
		can |= readsFrom
	}
	if _, ok := w.(io.StringWriter); ok {
		can |= writesStrings
	}
	if _, ok := w.(http.Pusher); ok {
		can |= pushes
	}
	if _, ok := w.(interface{ CloseNotify() <-chan bool }); ok {
		can |= notifiesClose
	}
	return can
}

// handOn returns the response as a writer with the abilities of the server's writer and
// no others: exactly those if that is a writer of net/http or httptest, and otherwise
// those of one of the types below. Each is one pointer, so that an interface holds it
// without an allocation.
func (w *response) handOn() http.ResponseWriter {
	switch can := abilities(w.ResponseWriter); {
	case all(can, likeHTTP1):
		return wHTTP1{wFHRS{wFHR{wFH{wF{w}}}}}
	case all(can, flushes|hijacks|readsFrom|writesStrings):
		return wFHRS{wFHR{wFH{wF{w}}}}
	case all(can, flushes|hijacks|readsFrom):
		return wFHR{wFH{wF{w}}}
	case all(can, flushes|hijacks):
		return wFH{wF{w}}
	case all(can, likeHTTP2):
		return wHTTP2{wFP{wF{w}}}
	case all(can, flushes|pushes):
		return wFP{wF{w}}
	case can == flushes|writesStrings:
		return wRecorder{w}
	case all(can, flushes|writesStrings):
		return wFS{wF{w}}
	case all(can, flushes):
		return wF{w}
	case all(can, hijacks):
		return wH{w}
	case all(can, pushes):
		return wP{w}
	}
	return w
}

func all(can, these uint) bool { return can&these == these }

// The types are named by what they can do: flush, hijack, read from, write
// strings, push. An http.Flusher has FlushError too, for http.ResponseController.
type (
	wF        struct{ *response }
	wFH       struct{ wF }
	wFHR      struct{ wFH }
	wFHRS     struct{ wFHR }
	wFP       struct{ wF }
	wFS       struct{ wF }
	wH        struct{ *response }
	wP        struct{ *response } // within an http.TimeoutHandler
	wHTTP1    struct{ wFHRS }
	wHTTP2    struct{ wFP }
	wRecorder struct{ *response } // httptest's
)

func (w wF) Flush()                                            { w.flush() }
func (w wF) FlushError() error                                 { return w.flush() }
func (w wFH) Hijack() (net.Conn, *bufio.ReadWriter, error)     { return w.hijack() }
func (w wFHR) ReadFrom(r io.Reader) (int64, error)             { return w.readFrom(r) }
func (w wFHRS) WriteString(s string) (int, error)              { return w.writeString(s) }
func (w wFP) Push(target string, opts *http.PushOptions) error { return w.push(target, opts) }
func (w wFS) WriteString(s string) (int, error)                { return w.writeString(s) }
func (w wH) Hijack() (net.Conn, *bufio.ReadWriter, error)      { return w.hijack() }
func (w wP) Push(target string, opts *http.PushOptions) error  { return w.push(target, opts) }
func (w wHTTP1) CloseNotify() <-chan bool                      { return w.closeNotify() }
func (w wHTTP2) WriteString(s string) (int, error)             { return w.writeString(s) }
func (w wHTTP2) CloseNotify() <-chan bool                      { return w.closeNotify() }
func (w wRecorder) Flush()                                     { w.flush() }
func (w wRecorder) WriteString(s string) (int, error)          { return w.writeString(s) }

// Unwrap is for http.ResponseController. If the server's writer can be unwrapped too,
// or has FlushError but not Flush, the controller gets a writer that notes its calls.
func (w *response) Unwrap() http.ResponseWriter {
	_, unwraps := w.ResponseWriter.(interface{ Unwrap() http.ResponseWriter })
	if unwraps || abilities(w.ResponseWriter)&(flushes|flushesOrFails) == flushesOrFails {
		return controlled{w}
	}
	return w.ResponseWriter
}

// A controlled response has the abilities that an http.ResponseController finds in wrapped writers.
type controlled struct{ *response }

func (w controlled) FlushError() error                            { return w.flush() }
func (w controlled) Hijack() (net.Conn, *bufio.ReadWriter, error) { return w.hijack() }
func (w controlled) Unwrap() http.ResponseWriter                  { return w.ResponseWriter }
