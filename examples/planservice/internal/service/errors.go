package service

import (
	"errors"
	"fmt"
)

var (
	// ErrInvalid matches errors about what a caller has sent.
	ErrInvalid = errors.New("invalid")
	// ErrEngine matches errors of databases.
	ErrEngine = errors.New("database failed")
	// ErrStopping: the service shuts down.
	ErrStopping = errors.New("the service shuts down")
	// ErrTooManyDatabases: as many databases are open in memory as clients may name.
	ErrTooManyDatabases = errors.New("too many databases in memory")
)

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrInvalid, fmt.Errorf(format, args...))
}
