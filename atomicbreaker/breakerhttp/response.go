package breakerhttp

import (
	"bufio"
	"io"
	"net"
	"net/http"
)

// A response notes the status of an answer on its way to the server's
// http.ResponseWriter. Like that, it belongs to the goroutine of its handler.
type response struct {
	http.ResponseWriter
	status int // of the final answer, 0 before it
}

// answered returns the status of what the handler left behind.
func (w *response) answered() int {
	w.begin(http.StatusOK)
	return w.status
}

// begin notes a status, of which the first final one counts.
func (w *response) begin(status int) {
	informational := status < 200 && status != http.StatusSwitchingProtocols
	if w.status == 0 && !informational {
		w.status = status
	}
}

func (w *response) WriteHeader(status int) {
	w.begin(status)
	w.ResponseWriter.WriteHeader(status)
}

func (w *response) Write(p []byte) (int, error) {
	w.begin(http.StatusOK)
	return w.ResponseWriter.Write(p)
}

func (w *response) WriteString(s string) (int, error) {
	w.begin(http.StatusOK)
	return io.WriteString(w.ResponseWriter, s)
}

// ReadFrom lets the server send files without copying them.
func (w *response) ReadFrom(r io.Reader) (int64, error) {
	w.begin(http.StatusOK)
	return io.Copy(w.ResponseWriter, r)
}

// FlushError is what http.ResponseController calls.
func (w *response) FlushError() error {
	w.begin(http.StatusOK)
	return http.NewResponseController(w.ResponseWriter).Flush()
}

func (w *response) Flush() { w.FlushError() }

func (w *response) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buf, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err == nil {
		w.begin(http.StatusSwitchingProtocols)
	}
	return conn, buf, err
}

// Unwrap is for http.ResponseController.
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }
