package cuda

import (
	"fmt"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cuda/internal/driver"
)

// Foreign has another library give work to the stream, such as one of collectives. Call gets the stream, a CUstream, on an operating system's
// thread to which the device's context is current. Its error is the recording's. It must not use the recorder.
//
// What the work uses has to stay open until it is done: [HostBuffer] and [Buffer] are not kept. The software GPU has streams, and buffers
// in the host's memory, but no other library can give it work.
func Foreign(r Recorder, call func(stream uintptr) error) error {
	w := workOf(r)
	if w == nil || call == nil {
		return fmt.Errorf("foreign: nil recorder or call: %w", compute.ErrArgument)
	}
	return w.do(func(_ driver.Driver, s driver.Stream) error { return call(uintptr(s)) })
}
