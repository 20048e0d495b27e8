package program

import "github.com/wavelane/wavelane/compute"

// Activation returns the activation of the options.
func (a Attr) Activation() compute.Activation {
	switch o := a.Options.(type) {
	case compute.MatMulOptions:
		return o.Act
	case compute.Conv2DOptions:
		return o.Act
	case compute.Conv1DOptions:
		return o.Act
	case compute.BiasActivationOptions:
		return o.Act
	}
	return compute.NoActivation
}
