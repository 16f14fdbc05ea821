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
)

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrInvalid, fmt.Errorf(format, args...))
}
