package dist

import "time"

// SetCloseTimeout changes how long Close waits without WithTimeout.
func SetCloseTimeout(d time.Duration) { closeTimeout = d }

// CopyMessages has a world of MPI send from memory of its own only, as among several machines.
func CopyMessages(w *World) {
	t := w.transport.(mpiTransport)
	t.near = false
	w.transport = t
}
