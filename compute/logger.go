package compute

// Logger is what devices need of a [log/slog.Logger]. It is an interface so that programs that give a device none, as most of those
// for browsers, have nothing of that package in them but its name.
type Logger interface {
	Debug(msg string, args ...any)
	Info(msg string, args ...any)
	Warn(msg string, args ...any)
	Error(msg string, args ...any)
}

// Silence is the Logger that devices have by default: it logs nothing.
type Silence struct{}

// Debug does nothing.
func (Silence) Debug(string, ...any) {}

// Info does nothing.
func (Silence) Info(string, ...any) {}

// Warn does nothing.
func (Silence) Warn(string, ...any) {}

// Error does nothing.
func (Silence) Error(string, ...any) {}
