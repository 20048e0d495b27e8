package cpu

import "time"

// clock measures the steps of a run for who asks, see program.IO.
type clock struct {
	times []time.Duration
	done  int // steps of the program
	at    time.Time
}

// reach is called before step i of the executable and after the last one.
func (c *clock) reach(x *executable, i int) {
	if c.done == len(c.times) {
		return
	}
	now := time.Now()
	for ; c.done < len(c.times) && i == x.ends[c.done]; c.done++ {
		c.times[c.done] = now.Sub(c.at)
		c.at = now
	}
	if i == 0 || c.at.IsZero() {
		c.at = now
	}
}
