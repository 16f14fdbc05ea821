package api

import (
	"errors"
	"fmt"
)

// Code says what went wrong. The comments have the statuses.
type Code string

const (
	CodeInvalidJSON          Code = "invalid_json"          // 400
	CodeInvalidName          Code = "invalid_name"          // 400
	CodeInvalid              Code = "invalid"               // 400
	CodeCrossOrigin          Code = "cross_origin"          // 403: a page of another site has sent it
	CodeNotFound             Code = "not_found"             // 404
	CodeMethod               Code = "method_not_allowed"    // 405
	CodeExists               Code = "exists"                // 409
	CodeNoActiveChangeset    Code = "no_active_changeset"   // 409
	CodeApplying             Code = "applying"              // 409
	CodeAlreadyApplied       Code = "already_applied"       // 409: under another key
	CodeKeyReused            Code = "key_reused"            // 409: for another changeset
	CodeTooManyDatabases     Code = "too_many_databases"    // 409: in memory
	CodeElsewhere            Code = "elsewhere"             // 409: open at another replica, or for a database in memory there
	CodeConflict             Code = "conflict"              // 412
	CodeTooLarge             Code = "too_large"             // 413
	CodeMediaType            Code = "unsupported_media"     // 415
	CodePreconditionRequired Code = "precondition_required" // 428
	CodeInternal             Code = "internal"              // 500
	CodeEngine               Code = "engine"                // 500: the database has failed
	CodeBusy                 Code = "busy"                  // 503: the queue of the workers is full
	CodeStopping             Code = "stopping"              // 503: the service shuts down
	CodeUnavailable          Code = "unavailable"           // 503: no majority of the replicas answers; nothing was done
	CodeUnknown              Code = "unknown"               // 504: no answer of the replicas; it may be done, once, or not
)

// Error is an answer with a status of 400 or above.
type Error struct {
	Status  int    `json:"-"`
	Code    Code   `json:"code"`
	Message string `json:"message"`
}

// Error shows status, code and message.
func (e *Error) Error() string {
	return fmt.Sprintf("planservice: %d %s: %s", e.Status, e.Code, e.Message)
}

// ErrorBody is how an Error travels.
type ErrorBody struct {
	Error *Error `json:"error"`
}

// IsCode reports whether err is an answer of the service with that code.
func IsCode(err error, code Code) bool {
	var e *Error
	return errors.As(err, &e) && e.Code == code
}
