package shadow

// Values has a bit for each byte that has a value.
type Values []uint64

// Resize makes room for n bytes; new ones have no value.
func (d *Values) Resize(n int) {
	if words := (n + 63) / 64; len(*d) < words {
		*d = append(*d, make(Values, words-len(*d))...)
	}
}

// Bytes is how many bytes there is room for, a multiple of 64.
func (d Values) Bytes() int { return len(d) * 64 }

// Undefined has a bit for each of up to 32 bytes that has no value.
func (d Values) Undefined(off, n int) uint32 {
	v := d[off>>6] >> (off & 63)
	if off&63+n > 64 {
		v |= d[off>>6+1] << (64 - off&63)
	}
	return ^uint32(v) & uint32(1<<n-1)
}

// Define notes which of up to 32 bytes have a value from now on.
func (d Values) Define(off, n int, undef uint32) {
	mask := uint64(1)<<n - 1
	v := mask &^ uint64(undef)
	at := off & 63
	d[off>>6] = d[off>>6]&^(mask<<at) | v<<at
	if at+n > 64 {
		d[off>>6+1] = d[off>>6+1]&^(mask>>(64-at)) | v>>(64-at)
	}
}

// Mark notes of any number of bytes whether they have a value.
func (d Values) Mark(off, n int, defined bool) {
	for n > 0 {
		k := min(n, 64-off&63)
		mask := (^uint64(0) >> (64 - k)) << (off & 63)
		if defined {
			d[off>>6] |= mask
		} else {
			d[off>>6] &^= mask
		}
		off, n = off+k, n-k
	}
}
