package ir

// Unsupported is why the root, which PTX has, has no form here; "" if it has or if PTX has no such root.
func Unsupported(op Op) string {
	switch op {
	case "tcgen05.mma.ws", "tcgen05.shift":
		return "of the tensor cores of sm_100, weight-stationary products and shifts are not supported"
	}
	return ""
}
