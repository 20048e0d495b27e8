package route

// measure keeps the default costs: measuring would block the event loop.
func (*Router) measure() {}
