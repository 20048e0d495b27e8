package dist

import "time"

// SetCloseTimeout changes how long Close waits without WithTimeout.
func SetCloseTimeout(d time.Duration) { closeTimeout = d }
