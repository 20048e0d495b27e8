package op

// Placer is a device that gives programs to others. Rewrites ask the one that a program is placed on, not the placer.
type Placer interface {
	// Place returns the device for a program as it was recorded, and why.
	Place(p *Program) (Executor, string)
}
