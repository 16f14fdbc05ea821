package breakerhttp

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"

	"github.com/latchfree/latchfree/atomicbreaker"
)

// A response notes how a request is answered on its way to the server's
// http.ResponseWriter, and reports it. Like that, it belongs to the goroutine
// of its handler.
type response struct {
	http.ResponseWriter
	m        *Middleware
	req      *http.Request
	in       *incoming // nil if the request has no body
	permit   atomicbreaker.GroupPermit[string]
	status   int  // of the final answer, 0 before it
	unread   bool // the body had failed before that
	reported bool // false → true once, before the permit is used
}

// begin notes a status, of which the first final one counts.
func (w *response) begin(status int) {
	informational := status < 200 && status != http.StatusSwitchingProtocols
	if w.status == 0 && !informational {
		w.status, w.unread = status, w.in.failed()
	}
}

// end reports the call with its status, unless it has ended before. What the client
// has not sent the body for is Ignored. It runs user code.
func (w *response) end() {
	if w.reported {
		return
	}
	w.reported = true
	if w.unread || w.in.cutOff() {
		w.permit.Cancel()
		return
	}
	classified(w.permit, func() atomicbreaker.Outcome { return w.m.outcome(w.req, w.status) })
}

// unwind hands the request back, and reports the call if the handler has not returned
// and the call has not ended before.
func (w *response) unwind() {
	w.in.handBack()
	if w.reported {
		return
	}
	w.reported = true
	if gone(w.req) || w.in.failed() || w.in.cutOff() {
		w.permit.Cancel()
		return
	}
	w.permit.Failure()
}

func (w *response) WriteHeader(status int) {
	w.begin(status)
	w.ResponseWriter.WriteHeader(status)
}

func (w *response) Write(p []byte) (int, error) {
	w.begin(http.StatusOK)
	return w.ResponseWriter.Write(p)
}

func (w *response) writeString(s string) (int, error) {
	w.begin(http.StatusOK)
	return w.ResponseWriter.(io.StringWriter).WriteString(s)
}

// readFrom lets the server send files without copying them.
// readFrom has answered only if there was anything to read: if the reader fails
// at once, the handler may still answer with an error.
func (w *response) readFrom(r io.Reader) (int64, error) {
	n, err := w.ResponseWriter.(io.ReaderFrom).ReadFrom(r)
	if n > 0 {
		w.begin(http.StatusOK)
	}
	return n, err
}

func (w *response) flush() error {
	err := http.NewResponseController(w.ResponseWriter).Flush()
	if !errors.Is(err, http.ErrNotSupported) {
		w.begin(http.StatusOK)
	}
	return err
}

func (w *response) push(target string, opts *http.PushOptions) error {
	return w.ResponseWriter.(http.Pusher).Push(target, opts)
}

func (w *response) closeNotify() <-chan bool {
	return w.ResponseWriter.(interface{ CloseNotify() <-chan bool }).CloseNotify()
}

// hijack ends the call, which may go on for as long as the connection. User
// code that does not return takes the connection with it, so it is closed.
func (w *response) hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buf, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err != nil {
		return conn, buf, err
	}
	ended := false
	defer func() {
		if !ended {
			conn.Close()
		}
	}()
	w.begin(http.StatusSwitchingProtocols)
	w.end()
	ended = true
	return conn, buf, nil
}
