//go:build ((linux && !android) || windows) && (amd64 || arm64)

package libcuda

import "github.com/wavelane/wavelane/cuda/internal/driver"

func (d *library) StreamCreate(priority int) (driver.Stream, driver.Result) {
	const nonBlocking = 1 // CU_STREAM_NON_BLOCKING
	h, r := create(d.cuStreamCreateWithPriority, nonBlocking, uintptr(priority))
	return driver.Stream(h), r
}

func (d *library) StreamPriorityRange() (least, greatest int, r driver.Result) {
	f := take()
	r = f.call(d.cuCtxGetStreamPriorityRange, f.at(0), f.at(1))
	least, greatest = f.int(0), f.int(1)
	f.give()
	return least, greatest, r
}

func (d *library) StreamDestroy(s driver.Stream) driver.Result {
	return call(d.cuStreamDestroy, uintptr(s))
}

func (d *library) StreamSynchronize(s driver.Stream) driver.Result {
	return call(d.cuStreamSynchronize, uintptr(s))
}

func (d *library) StreamQuery(s driver.Stream) driver.Result {
	return call(d.cuStreamQuery, uintptr(s))
}

func (d *library) StreamWaitEvent(s driver.Stream, e driver.Event) driver.Result {
	return call(d.cuStreamWaitEvent, uintptr(s), uintptr(e), 0)
}

func (d *library) EventCreate(timing bool) (driver.Event, driver.Result) {
	const blockingSync, disableTiming = 1, 2 // CU_EVENT_…
	var flags uintptr = blockingSync
	if !timing {
		flags |= disableTiming
	}
	h, r := create(d.cuEventCreate, flags)
	return driver.Event(h), r
}

func (d *library) EventDestroy(e driver.Event) driver.Result {
	return call(d.cuEventDestroy, uintptr(e))
}

func (d *library) EventRecord(e driver.Event, s driver.Stream) driver.Result {
	return call(d.cuEventRecord, uintptr(e), uintptr(s))
}

func (d *library) EventSynchronize(e driver.Event) driver.Result {
	return call(d.cuEventSynchronize, uintptr(e))
}

func (d *library) EventQuery(e driver.Event) driver.Result { return call(d.cuEventQuery, uintptr(e)) }

func (d *library) EventElapsed(start, end driver.Event) (float32, driver.Result) {
	f := take()
	r := f.call(d.cuEventElapsedTime, f.at(0), uintptr(start), uintptr(end))
	milliseconds := f.float32(0)
	f.give()
	return milliseconds, r
}
