package simd

// SplitEarly makes slice functions use several threads for little work, until the function that it returns is called.
func SplitEarly() (restore func()) {
	split, part := splitTime, partTime
	splitTime, partTime = 0, 0
	return func() { splitTime, partTime = split, part }
}
