package compute

// BiasActivationOptions names the function that follows the addition.
type BiasActivationOptions struct {
	Act Activation
}
