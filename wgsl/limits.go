package wgsl

// workgroup returns the number of threads of a one-dimensional workgroup: a power of two, at most 256.
func (s *step) workgroup() int {
	n := uint32(256)
	for n > 1 && (n > s.caps.MaxInvocations || n > s.caps.MaxWorkgroupSize[0]) {
		n /= 2
	}
	return int(n)
}

// alignment is that of a binding's offset where vec4 are read.
func (s *step) alignment() uint64 { return max(16, uint64(s.caps.StorageAlign)) }
