package blocks

// One row of weights with one of x in portable Go. Tiers with vectors have functions for rows instead.

func weigh(s, a, scale, b, sum []float32) float32 { return weighGo(s, a, scale, b, sum) }

func (m *room) dot(q, x []int8) float32 { return dotGo(q, x, m.s[:], m.width) }

// product is the dot product of the row's n values from lo on with x, times the scales in the room.
func (m *room) product(x []int8, lo, n int) float32 { return m.dot(m.integers(lo, n), x) }

// productFloats is the product of floats with the row's values from lo on, at most a piece.
func (m *room) productFloats(x []float32, lo int) float32 { return m.expanded(x, lo) }
