package blocks

// withoutBytewise runs f as on a processor that has no products of bytes.
func withoutBytewise(f func()) {
	vnni = false
	defer func() { vnni = true }()
	f()
}
