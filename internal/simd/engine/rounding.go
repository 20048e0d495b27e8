package engine

func CeilDiv(a, b int) int { return (a + b - 1) / b }

// Padded rounds a number of elements up to whole groups of a width.
func Padded(n, width int) int { return CeilDiv(n, width) * width }
