package blocks

// withoutBytewise runs f as on a processor that has no products of bytes.
func withoutBytewise(f func()) {
	wide, narrow := vnni, avxVNNI
	vnni, avxVNNI = false, false
	defer func() { vnni, avxVNNI = wide, narrow }()
	f()
}
