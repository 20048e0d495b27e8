//go:build !unix

package misuse

import "time"

// processorTime is unknown: the clock alone limits calls.
func processorTime() time.Duration { return 0 }
