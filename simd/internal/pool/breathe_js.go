package pool

import (
	"runtime"
	"time"
)

// lastBreath is when the event loop had its last turn during a run, as far as is known. There is one thread.
var lastBreath time.Time

// Breathe gives others a turn, between pieces of long work: there is one thread without preemption. Goroutines have theirs always; the
// page's events, a cancellation among them, have theirs ten times a second, as it costs some milliseconds.
func Breathe() {
	runtime.Gosched()
	const often, idle = 100 * time.Millisecond, 2 * time.Second
	now := time.Now()
	switch d := now.Sub(lastBreath); {
	case d > idle: // longer than chunks take: nothing ran, and the page had its turns
		lastBreath = now
	case d > often:
		time.Sleep(time.Millisecond) // long enough that the scheduler returns to the event loop
		lastBreath = time.Now()
	}
}
