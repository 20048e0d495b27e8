//go:build !amd64 && !arm64

package blocks

func (w *row) unpackQuants(q []int8, block int) { w.quants(q, w, block) }

func (w *row) unpackScales(a, b []float32, block int) { w.scales(a, b, w, block) }

func (m *room) expand(y []float32, q []int8) { expandGo(y, q, m.a[:], m.b[:], m.format) }

func raised(f *format) float32 { return f.offset }

func weigh(s, a, scale, b, sum []float32) float32 { return weighGo(s, a, scale, b, sum) }

func (m *room) dot(q, x []int8) float32 { return dotGo(q, x, m.s[:], m.width) }

func (m *room) product(x []int8, lo, n int) float32 { return m.dot(m.integers(lo, n), x) }
