//go:build amd64 || arm64

package blocks

import (
	"math/bits"
	"unsafe"
)

// prepare unpacks n integers of the room's row, from lo on, for products with several rows of x. The scales are there.
func (m *room) prepare(u *unpacked, lo, n int) {
	if !inLanes() {
		m.prepareAsStored(u, lo, n)
		return
	}
	// What is after the end of the last chunk is multiplied with zeros.
	groups, end := n/m.width, (n+chunk-1)/chunk*chunk/m.width
	clear(u.a[groups:end])
	clear(u.b[groups:end])
	m.intoLanes(u, m.integers(lo, n))
}

// products sets sums to those of what is prepared with up to Most rows of x, less what the integers stand above zero and the minima.
func (m *room) products(u *unpacked, sums *[Most]float32, x []Rounded, lo, n int) {
	if !inLanes() {
		m.productsEach(u, sums, x, lo, n)
		return
	}
	least := &m.minima(u.a[:], u.b[:])[0]
	m.factor = m.raise()
	stride := 0
	if len(x) > 1 {
		stride = int(uintptr(unsafe.Pointer(&x[1].Q[0])) - uintptr(unsafe.Pointer(&x[0].Q[0])))
	}
	functions := m.severalFunctions()
	for i := 0; i < len(x); {
		log := min(bits.Len(uint(len(x)-i)), len(functions)) - 1
		r := &x[i]
		sum := &r.sum[lo/32:][0]
		if m.width == 16 {
			sum = &r.sum16[lo/16:][0]
		}
		functions[log](&m.sums[i], &u.q[0], &u.a[0], least, &m.factor, &r.Q[lo], &r.scale[lo/32], sum, stride, (n+chunk-1)/chunk)
		i += 1 << log
	}
	*sums = m.sums
}

// A severalFunction multiplies n chunks with rows of x that are stride bytes apart, and so are their scales and sums.
type severalFunction = func(sums *float32, q *int8, a, least, factor *float32, x *int8, scale, sum *float32, stride, n int)
