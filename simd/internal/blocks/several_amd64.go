package blocks

import (
	"math/bits"
	"unsafe"
)

// inLanes says whether integers are in lanes where several rows of x are multiplied.
func inLanes() bool { return avx2() }

// prepare unpacks n integers of the room's row, from lo on, for products with several rows of x. The scales are there.
func (m *room) prepare(u *unpacked, lo, n int) {
	if !inLanes() {
		m.prepareAsStored(u, lo, n)
		return
	}
	// What is behind the end of the last chunk is multiplied with zeros.
	groups, end := n/m.width, (n+chunk-1)/chunk*chunk/m.width
	clear(u.a[groups:end])
	clear(u.b[groups:end])
	q := m.integers(lo, n)
	if m.quants != nil {
		lanesAVX2(&u.q[0], &q[0], (n+255)/256) // behind n is memory of the room
		return
	}
	whole, flip := n&^255, byte(0)
	if bytewise() {
		flip = 0x80
	}
	if whole > 0 {
		lanesStoredAVX2(&u.q[0], &q[0], whole/256, flip)
	}
	if whole < n {
		copy(m.q[:256], q[whole:])
		lanesStoredAVX2(&u.q[whole/chunk*chunk+whole%chunk/8], &m.q[0], 1, flip)
	}
}

// products sets sums to those of what is prepared with up to Most rows of x, less what the integers stand above zero and the
// minima.
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
		functions[log](&m.sums[i], &u.q[0], &u.a[0], least, &m.factor, &r.Q[lo], &r.scale[lo/32], sum, stride,
			(n+chunk-1)/chunk)
		i += 1 << log
	}
	*sums = m.sums
}

// A severalFunction multiplies n chunks with rows of x that are stride bytes apart, and so are their scales and sums.
type severalFunction = func(sums *float32, q *int8, a, least, factor *float32, x *int8, scale, sum *float32, stride, n int)

// Functions for 1, 2, 4 and 8 rows.
var (
	several32VNNI     = []severalFunction{products32x1VNNI, products32x2VNNI, products32x4VNNI, products32x8VNNI}
	several16VNNI     = []severalFunction{products16x1VNNI, products16x2VNNI, products16x4VNNI, products16x8VNNI}
	several32AVX2     = []severalFunction{products32x1AVX2, products32x2AVX2, products32x4AVX2}
	several16AVX2     = []severalFunction{products16x1AVX2, products16x2AVX2, products16x4AVX2}
	severalSignedAVX2 = []severalFunction{productsSignedx1AVX2, productsSignedx2AVX2, productsSignedx4AVX2}
)

func (m *room) severalFunctions() []severalFunction {
	switch {
	case bytewise() && m.width == 32:
		return several32VNNI
	case bytewise():
		return several16VNNI
	case m.quants == nil:
		return severalSignedAVX2
	case m.width == 32:
		return several32AVX2
	}
	return several16AVX2
}
