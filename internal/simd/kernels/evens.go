package kernels

// Evens copies every second word of src, which has at least 2·len(dst) − 1.
//
//	for i := range dst { dst[i] = src[2*i] }
func Evens(dst, src []uint32) {
	if len(dst) == 0 {
		return
	}
	_ = src[2*len(dst)-2] // assembly checks nothing
	done := evens(dst, src)
	for i := done; i < len(dst); i++ {
		dst[i] = src[2*i]
	}
}
