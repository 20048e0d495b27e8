package cuda

import (
	"time"

	"github.com/wavelane/wavelane/cuda/internal/driver"
)

// clock measures the steps of a run that is profiled, see program.IO: by events before the first step and after each. A nil
// one does nothing.
type clock struct {
	times  []time.Duration
	events []driver.Event
}

func newClock(times []time.Duration) *clock {
	if times == nil {
		return nil
	}
	return &clock{times: times}
}

// reach is called before action i, and after the last. The caller has entered the context.
func (c *clock) reach(e *compiled, i int, s driver.Stream) error {
	if c == nil {
		return nil
	}
	for n := len(c.events); n == 0 || n <= len(e.ends) && e.ends[n-1] == i; n++ {
		if err := c.mark(e.d, s); err != nil {
			return err
		}
	}
	return nil
}

// mark records an event. The caller has entered the context.
func (c *clock) mark(d *state, s driver.Stream) error {
	event, err := d.events.get(true)
	if err != nil {
		return err
	}
	c.events = append(c.events, event)
	return d.check("cuEventRecord", d.drv.EventRecord(event, s))
}

// read sets the times once the run is done.
func (c *clock) read(d *state) (err error) {
	if c == nil {
		return nil
	}
	defer c.free(d)
	if err := d.enter(); err != nil {
		return err
	}
	defer d.leave()
	for i := range c.times {
		ms, r := d.drv.EventElapsed(c.events[i], c.events[i+1])
		if err := d.check("cuEventElapsedTime", r); err != nil {
			return err
		}
		c.times[i] = time.Duration(float64(ms) * 1e6)
	}
	return nil
}

// free gives the events back.
func (c *clock) free(d *state) {
	for _, event := range c.events {
		d.events.put(event, true)
	}
	c.events = nil
}
