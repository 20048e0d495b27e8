package program

// Peaks are the rates that a device can reach, in bytes and floating-point operations a second; 0 where they are not known.
type Peaks struct {
	Memory  float64 // of operands and results in the device's memory
	Math    float64 // of steps that compute anything but products
	Product float64 // of matrix products, convolutions and attention
}

// Launch is a kernel on a grid of blocks of threads, or "copy" or "fill" for memory without a kernel.
type Launch struct {
	Kernel string
	Grid   [3]uint32
	Block  [3]uint32
}

// Traffic is the number of bytes that a step has to read and write: its operands and results, of tables only what rows are taken
// from or put into.
func (e *Entry) Traffic(in, out []Type) float64 {
	results := 0.0
	for _, t := range out {
		results += float64(t.Bytes())
	}
	if e.Class == Move && e.Updates > 0 { // the rest of what is updated stays as it is
		results = 0
		for _, t := range in[e.Updates:] {
			results += float64(t.Bytes())
		}
		return 2 * results
	}
	n := results
	for _, t := range in {
		if b := float64(t.Bytes()); e.Class == Move {
			n += min(b, results)
		} else {
			n += b
		}
	}
	return n
}
