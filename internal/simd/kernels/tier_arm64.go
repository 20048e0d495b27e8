package kernels

// detect: vectors are part of the base architecture.
func detect() []Tier { return []Tier{Scalar, NEON} }
