package core

import (
	"errors"
	"fmt"
)

// ErrClosed is the error of whatever uses a [Core] after [Core.Close].
var ErrClosed = errors.New("the core is closed")

// String is the name of the status in the ABI, such as "BAD_HANDLE".
func (s Status) String() string {
	return describe(statusNames[:], s)
}

// Error is the status in words.
func (s Status) Error() string {
	return describe(statusTexts[:], s)
}

func describe(texts []string, s Status) string {
	if code := -int(s); code >= 0 && code < len(texts) {
		return texts[code]
	}
	return fmt.Sprintf("unknown status %d", int32(s))
}

// Error is a refusal of the core. [errors.Is] finds its Status.
type Error struct {
	Operation string // the export, such as "pool_edit"
	Status    Status
	Detail    string // what was passed, as far as it matters; may be empty
}

// Error names the operation, the status with its code, and what was passed.
func (e *Error) Error() string {
	text := fmt.Sprintf("core: %s: %v (%d): %s", e.Operation, e.Status.String(), int32(e.Status), e.Status.Error())
	if e.Detail != "" {
		text += "; got " + e.Detail
	}
	return text
}

// Unwrap is the Status.
func (e *Error) Unwrap() error {
	return e.Status
}

func refuse(operation string, status Status, format string, args ...any) error {
	return &Error{operation, status, fmt.Sprintf(format, args...)}
}
