//go:build !amd64 && !arm64

package blocks

// mostRest is the most groups of 32 after the last chunk that are not put into lanes, of which there are none here.
const mostRest = 0

func (w *row) unpackQuants(q []int8, block int) { w.quants(q, w, block) }

func (w *row) unpackScales(a, b []float32, block int) { w.scales(a, b, w, block) }

func (m *room) expand(y []float32, q []int8) { expandGo(y, q, m.a[:], m.b[:], m.format) }

func raised(f *format) float32 { return f.offset }

// inLanes says whether integers are in lanes where several rows of x are multiplied.
func inLanes() bool { return false }

// prepare unpacks n integers of the room's row, from lo on, for products with several rows of x. The scales are there.
func (m *room) prepare(u *unpacked, lo, n int) { m.prepareAsStored(u, lo, n) }

// products sets the room's sums to those of rows that are prepared, at most Held, with rows of x from first on, at most Most: less what
// the integers stand above zero and the minima.
func (m *room) products(u []unpacked, x RoundedRows, first, lo, n int) {
	m.productsEach(u, x, first, lo, n)
}
