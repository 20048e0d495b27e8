package compute

// RopeOptions parametrises rope. The zero value is the original: interleaved pairs over the whole head, base 10000.
type RopeOptions struct {
	// NeoX pairs element i with element i + Dims/2 instead of 2i with 2i + 1.
	NeoX bool
	// Dims is the number of leading elements of each head that are rotated, even; 0 means all.
	Dims int
	// Base of the frequencies, Base^(−2i/Dims) for pair i; 0 means 10000, else at least 1.
	Base float32
	// Scale multiplies all frequencies (position interpolation by a factor f is 1/f); 0 means 1.
	Scale float32
	// Precise reduces angles so that the error does not grow with the position, up to 2²⁰ and beyond. The default computes
	// them in float32 where that is faster: its error is up to 2e-6 of the angle, as in most implementations.
	Precise bool
}
