package wavelane

import (
	"time"

	"github.com/wavelane/wavelane/internal/route"
)

// Costs predict the time of programs on a device: Launch, the transfer of slices, and for each step the largest of Step and the times
// for its memory and arithmetic. Rates are in 10⁹ bytes or operations a second.
type Costs struct {
	Launch   time.Duration `json:"launch_ns"`      // of a program, until its results are there
	Step     time.Duration `json:"step_ns"`        // of each step, at least
	Transfer float64       `json:"transfer_gb_s"`  // of operands and results on slices, to the device and back; 0 for none
	Memory   float64       `json:"memory_gb_s"`    // of operands and results of steps
	Math     float64       `json:"math_gflops"`    // of steps that compute anything but products
	Product  float64       `json:"product_gflops"` // of matrix products, convolutions, attention
}

// String lists the costs with their units.
func (c Costs) String() string { return route.Costs(c).String() }

// Costs returns the costs by which programs are routed, by kind of device, or nil where they are not routed; see [WithoutRouting]. It
// measures them if no program has needed them yet.
func (d *Device) Costs() map[string]Costs {
	if d.router == nil {
		return nil
	}
	costs := map[string]Costs{}
	for kind, c := range d.router.Costs() {
		costs[kind] = Costs(c)
	}
	return costs
}
