package simd

import "github.com/wavelane/wavelane/internal/program"

// SplitEarly makes slice functions use several threads for little work, until the function that it returns is called.
func SplitEarly() (restore func()) {
	split, part := splitTime, partTime
	splitTime, partTime = 0, 0
	return func() { splitTime, partTime = split, part }
}

// Poison fills all memory that the device hands out from now on with NaN.
func (d *Device) Poison() { d.memory.poison = true }

// Linked reports whether chains have links for an entry.
func Linked(e *program.Entry) bool { return links[e.Name] != 0 }
