package pool

import (
	"sync"
	"syscall/js"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Work of several goroutines that never waits but in Yield leaves the event loop time to run: a timer fires.
func TestYieldServesEvents(t *testing.T) {
	fired := 0
	tick := js.FuncOf(func(js.Value, []js.Value) any { fired++; return nil })
	defer tick.Release()
	timer := js.Global().Call("setInterval", tick, 1)
	defer js.Global().Call("clearInterval", timer)
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			for start := time.Now(); fired < 3 && time.Since(start) < time.Minute; {
				Yield()
			}
		})
	}
	all.Wait()
	require.GreaterOrEqual(t, fired, 3)
	require.Nil(t, waiting)
}
