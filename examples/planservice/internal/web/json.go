package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/latchfree/latchfree/examples/planservice/api"
)

// maxBody is how many bytes a request's body may have.
const maxBody = 1 << 20

// read decodes a body: one JSON value of known fields.
func read[T any](w http.ResponseWriter, r *http.Request) (v T, err error) {
	if kind := r.Header.Get("Content-Type"); kind != "" {
		if media, _, err := mime.ParseMediaType(kind); err != nil || media != "application/json" {
			return v, &api.Error{Status: http.StatusUnsupportedMediaType, Code: api.CodeMediaType, Message: fmt.Sprintf("the body is sent as %s: send it as application/json", kind)}
		}
	}
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	d.DisallowUnknownFields()
	if err = d.Decode(&v); err == nil {
		if _, err = d.Token(); err == nil {
			err = errors.New("there is more after the JSON value")
		} else if err == io.EOF {
			return v, nil
		}
	}
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return v, &api.Error{Status: http.StatusRequestEntityTooLarge, Code: api.CodeTooLarge, Message: fmt.Sprintf("the body has more than %d bytes", maxBody)}
	}
	if err == io.EOF {
		err = errNoBody
	}
	return v, fmt.Errorf("%w: %w", &api.Error{Status: http.StatusBadRequest, Code: api.CodeInvalidJSON, Message: err.Error()}, err)
}

var errNoBody = errors.New("the body is empty")

// readOptional is read of a body that may be left out.
func readOptional[T any](w http.ResponseWriter, r *http.Request) (T, error) {
	v, err := read[T](w, r)
	if errors.Is(err, errNoBody) {
		err = nil
	}
	return v, err
}

func (h *server) writeJSON(w http.ResponseWriter, status int, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(append(text, '\n')) // it fails if the client has left
	return nil
}

// writeStored writes a value with its version as ETag.
func writeStored[T any](h *server, w http.ResponseWriter, r *http.Request, status int, v api.Stored[T]) error {
	etag := api.ETag(v.Version)
	w.Header().Set("ETag", etag)
	if r.Method == http.MethodGet && r.Header.Get("If-None-Match") == etag {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	return h.writeJSON(w, status, v)
}

// ifMatch returns the version that a request is about.
func ifMatch(r *http.Request) (uint64, error) {
	text := r.Header.Get("If-Match")
	if text == "" {
		return 0, &api.Error{Status: http.StatusPreconditionRequired, Code: api.CodePreconditionRequired, Message: "If-Match with the ETag is missing"}
	}
	quoted, ok := strings.CutPrefix(text, `"`)
	quoted, end := strings.CutSuffix(quoted, `"`)
	version, err := strconv.ParseUint(quoted, 10, 64)
	if !ok || !end || err != nil {
		return 0, &api.Error{Status: http.StatusPreconditionFailed, Code: api.CodeConflict, Message: "If-Match is no ETag of this service"}
	}
	return version, nil
}
