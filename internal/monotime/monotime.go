// Package monotime measures short times. On Windows, where [time.Now] goes on in steps of up to 16 ms, it reads the performance counter.
package monotime

import "time"

// Time is a moment, in nanoseconds since an arbitrary one. Differences are exact to a microsecond or better.
type Time int64

// Sub returns the time between two moments.
func (t Time) Sub(u Time) time.Duration { return time.Duration(t - u) }

// Add returns the moment after some time.
func (t Time) Add(d time.Duration) Time { return t + Time(d) }

// Since returns the time since a moment.
func Since(t Time) time.Duration { return Now().Sub(t) }
