package cpu

import "github.com/wavelane/wavelane/internal/program"

// Poison fills all memory that the device hands out from now on with NaN.
func (d *Device) Poison() { d.memory.poison = true }

// Linked reports whether chains have links for an entry.
func Linked(e *program.Entry) bool { return links[e.Name] != 0 }
