package compute

import (
	"fmt"
	"reflect"
)

// Logger is the part of a [log/slog.Logger] that devices use. It is an interface so that programs without a logger, such as
// most of those for browsers, do not link package slog.
type Logger interface {
	Debug(msg string, args ...any)
	Info(msg string, args ...any)
	Warn(msg string, args ...any)
	Error(msg string, args ...any)
}

// CheckLogger returns an error that wraps ErrArgument for nil and for nil pointers, which could not log.
func CheckLogger(l Logger) error {
	if v := reflect.ValueOf(l); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return fmt.Errorf("nil logger: %w", ErrArgument)
	}
	return nil
}

// Silence is the default Logger of devices: it discards everything.
type Silence struct{}

// Debug does nothing.
func (Silence) Debug(string, ...any) {}

// Info does nothing.
func (Silence) Info(string, ...any) {}

// Warn does nothing.
func (Silence) Warn(string, ...any) {}

// Error does nothing.
func (Silence) Error(string, ...any) {}
