package compute

// AttentionOptions parametrises attention. With L keys in use, query i of n stands at position L − n + i, so that the last
// query stands at the last key.
type AttentionOptions struct {
	// Causal hides from a query the keys behind its position.
	Causal bool
	// Window, if not 0, hides keys that are so many positions or more away from the query: with Causal, a query sees its own
	// position and the Window − 1 before it. At most 2³⁰.
	Window int
	// SoftCap, if not 0, bends scores s to SoftCap·tanh(s/SoftCap) before they are masked.
	SoftCap float32
	// Scale multiplies scores; 0 stands for 1/√d.
	Scale float32
}
