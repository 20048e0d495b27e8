package simd

func ceilDiv(a, b int) int { return (a + b - 1) / b }

// padded rounds a number of elements up to whole groups of a width.
func padded(n, width int) int { return ceilDiv(n, width) * width }
