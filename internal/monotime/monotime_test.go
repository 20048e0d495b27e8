package monotime

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Short times are seen, and long ones are what another clock says.
func TestNow(t *testing.T) {
	from, other := Now(), time.Now()
	least := time.Hour
	for last := from; Since(from) < 50*time.Millisecond; {
		now := Now()
		require.GreaterOrEqual(t, now, last)
		if d := now.Sub(last); d > 0 {
			least = min(least, d)
		}
		last = now
	}
	passed := Since(from)
	require.Less(t, least, 100*time.Microsecond)
	require.InDelta(t, time.Since(other).Seconds(), passed.Seconds(), 0.1)
	require.Equal(t, from+Time(time.Second), from.Add(time.Second))
	require.Zero(t, testing.AllocsPerRun(100, func() { Since(from) }))
}
