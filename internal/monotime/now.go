//go:build !windows

package monotime

import "time"

var start = time.Now()

// Now returns the current moment.
func Now() Time { return Time(time.Since(start)) }
