package compute

// CrossEntropyOptions parametrises cross_entropy and its gradient. The zero value scores every row against its own target.
type CrossEntropyOptions struct {
	// LabelSmoothing ε in [0, 1] gives the target the probability 1−ε and spreads ε evenly over all classes.
	LabelSmoothing float32
	// Shift scores row i of each sequence, which are the last axis of targets, against target i+1, as language models are
	// trained. The last row of a sequence has no target: its loss and gradient are 0.
	Shift bool
	// Ignore leaves out rows whose target is IgnoreIndex: their loss and gradient are 0.
	Ignore      bool
	IgnoreIndex int32
}

// AdamOptions parametrises adam. A field of 0 takes the default that it names; WeightDecay has none.
type AdamOptions struct {
	LR          float32 // learning rate; 0 means 1e-3
	Beta1       float32 // decay of the mean of gradients, below 1; 0 means 0.9
	Beta2       float32 // decay of the mean of their squares, below 1; 0 means 0.999
	Eps         float32 // keeps the quotient finite; 0 means 1e-8
	WeightDecay float32 // per step and learning rate, decoupled from the gradient (AdamW)
	Step        int     // number of this step, from 1 on; 0 means 1. An operand step replaces it
}
