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
	m.intoLanes(u, lo, n)
}

// products sets the room's sums to those of rows that are prepared, at most Held, with rows of x from first on, at most Most: less what
// the integers stand above zero and the minima.
func (m *room) products(u []unpacked, x RoundedRows, first, lo, n int) {
	if !inLanes() {
		m.productsEach(u, x, first, lo, n)
		return
	}
	least := &m.minima(u[0].a[:], u[0].b[:])[0]
	m.factor = m.raise()
	functions := m.severalFunctions()
	whole, rest := split(n)
	for i, rows := 0, min(Most, x.Rows-first); i < rows; {
		log := min(bits.Len(uint(rows-i)), len(functions)) - 1
		r := x.Row(first + i)
		sum := &r.sum[lo/32:][0]
		if m.width == 16 {
			sum = &r.sum16[lo/16:][0]
		}
		functions[log](&m.sums[0][i], &u[0].q[0], &u[0].a[0], least, &m.factor, &r.Q[lo], &r.scale[lo/32], sum, 4*RoundedWords(x.K), whole,
			len(u), int(unsafe.Sizeof(u[0])), rest)
		i += 1 << log
	}
}

// A severalFunction multiplies n chunks of rows of weights, which are apart bytes apart, with rows of x that are stride bytes apart, and so
// are their scales and sums. After the chunks come groups of 32 that lie as they are, at most mostRest.
type severalFunction = func(sums *float32, q *int8, a, least, factor *float32, x *int8, scale, sum *float32, stride, n, weights, apart, rest int)
