//go:build !amd64 && !arm64

package blocks

func (w *row) unpackQuants(q []int8, block int) { w.quants(q, w, block) }

func (w *row) unpackScales(a, b []float32, block int) { w.scales(a, b, w, block) }

func (m *room) expand(y []float32, q []int8) { expandGo(y, q, m.a[:], m.b[:], m.format) }

func raised(f *format) float32 { return f.offset }

func weigh(s, a, scale, b, sum []float32) float32 { return weighGo(s, a, scale, b, sum) }

func (m *room) dot(q, x []int8) float32 { return dotGo(q, x, m.s[:], m.width) }

func (m *room) product(x []int8, lo, n int) float32 { return m.dot(m.integers(lo, n), x) }

// productFloats is the product of floats with the row's values from lo on, at most a piece.
func (m *room) productFloats(x []float32, lo int) float32 { return m.expanded(x, lo) }

// inLanes says whether integers are in lanes where several rows of x are multiplied.
func inLanes() bool { return false }

// prepare unpacks n integers of the room's row, from lo on, for products with several rows of x. The scales are there.
func (m *room) prepare(u *unpacked, lo, n int) { m.prepareAsStored(u, lo, n) }

// products sets sums to those of what is prepared with up to Most rows of x, less what the integers stand above zero and the
// minima.
func (m *room) products(u *unpacked, sums *[Most]float32, x []Rounded, lo, n int) {
	m.productsEach(u, sums, x, lo, n)
}

// rowsFloats and rows8 multiply rows of weights with one row of x where there are instructions for it.

func (w *Weights) rowsFloats(_, _ []float32, _ int) bool { return false }

func (w *Weights) rows8(_ []float32, _ *Rounded, _ int) bool { return false }
