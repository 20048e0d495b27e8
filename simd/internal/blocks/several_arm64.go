package blocks

import (
	"math/bits"
	"unsafe"
)

// inLanes says whether integers are in lanes where several rows of x are multiplied.
func inLanes() bool { return neon() }

// prepare unpacks n integers of the room's row, from lo on, for products with several rows of x. The scales are there.
func (m *room) prepare(u *unpacked, lo, n int) {
	if !inLanes() {
		m.keep(u, lo, n)
		return
	}
	// What is behind the end of the last chunk is multiplied with zeros.
	groups, end := n/m.width, (n+chunk-1)/chunk*chunk/m.width
	clear(u.a[groups:end])
	clear(u.b[groups:end])
	q := m.integers(lo, n)
	for at := 0; at < n; at += chunk {
		q, to := q[at:min(at+chunk, n)], u.q[at:]
		whole := len(q) / 128
		if whole > 0 {
			lanesNEON(&to[0], &q[0], whole)
		}
		if rest := q[128*whole:]; len(rest) > 0 {
			copy(m.q[:128], rest)
			lanesNEON(&to[16*whole], &m.q[0], 1)
		}
	}
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

// Functions for 1, 2 and 4 rows.
var (
	several32SDOT     = []severalFunction{products32x1SDOT, products32x2SDOT, products32x4SDOT}
	several16SDOT     = []severalFunction{products16x1SDOT, products16x2SDOT, products16x4SDOT}
	several32NEON     = []severalFunction{products32x1NEON, products32x2NEON}
	several16NEON     = []severalFunction{products16x1NEON, products16x2NEON}
	severalSignedNEON = []severalFunction{productsSignedx1NEON, productsSignedx2NEON}
)

func (m *room) severalFunctions() []severalFunction {
	switch {
	case bytewise() && m.width == 32:
		return several32SDOT
	case bytewise():
		return several16SDOT
	case m.quants == nil:
		return severalSignedNEON
	case m.width == 32:
		return several32NEON
	}
	return several16NEON
}
