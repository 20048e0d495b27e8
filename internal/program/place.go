package program

// Placer is a device that gives each program to one of others. Rewrites ask that one about it, not the placer.
type Placer interface {
	// Place returns the device for a program as it was recorded.
	Place(p *Program) Executor
	// ExplainPlace says which device that is, and why.
	ExplainPlace(p *Program) string
	// Peaks returns the rates of one of these devices, as far as they are known.
	Peaks(of Executor) Peaks
}
