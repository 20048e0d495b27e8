package tensormap

import "iter"

// spatial is the number of dimensions between channels and images.
func (m *Map) spatial() int { return m.Rank - 2 }

// validatePixels checks what only one of both kinds of maps has.
func (m *Map) validatePixels() error {
	if m.Pixels == 0 {
		if m.Channels != 0 || m.Lower != [MaxRank - 2]int32{} || m.Upper != [MaxRank - 2]int32{} {
			return argument("channels or corners without pixels")
		}
		return nil
	}
	switch {
	case m.Rank < 3:
		return argument("rank %d, want 3 to %d with pixels", m.Rank, MaxRank)
	case m.Box != [MaxRank]uint32{}:
		return argument("both a box and pixels")
	case m.Pixels > 1024:
		return argument("%d pixels, want 1 to 1024", m.Pixels)
	case m.Channels == 0 || m.Channels > 256:
		return argument("%d channels of a pixel, want 1 to 256", m.Channels)
	}
	limit := int32(1) << (16/m.spatial() - 1) // 16, 8 or 5 bits
	for i := range m.Lower {
		switch lower, upper := m.Lower[i], m.Upper[i]; {
		case i >= m.spatial():
			if lower != 0 || upper != 0 {
				return argument("a corner in dimension %d of a tensor of rank %d", i+1, m.Rank)
			}
		case lower < -limit || lower >= limit || upper < -limit || upper >= limit:
			return argument("corners %d and %d in dimension %d, want %d to %d", lower, upper, i+1, -limit, limit-1)
		case int64(lower) >= int64(m.Dims[i+1])+int64(upper):
			return argument("no pixel lies between the corners %d and %d in dimension %d", lower, upper, i+1)
		}
	}
	return nil
}

// RowLength is the number of neighbouring elements that a copy moves: those of dimension 0 of a box, or the channels of a pixel.
func (m *Map) RowLength() int {
	if m.Pixels > 0 {
		return int(m.Channels)
	}
	return m.Counts()[0]
}

// Begins tells whether a column of pixels may begin at an element: it has to lie within the corners, in all images. Tiles may begin
// anywhere. The error wraps compute.ErrArgument.
func (m *Map) Begins(at [MaxRank]int64) error {
	for d := 1; m.Pixels > 0 && d < m.Rank-1; d++ {
		if lower, end := int64(m.Lower[d-1]), int64(m.Dims[d])+int64(m.Upper[d-1]); at[d] < lower || at[d] >= end {
			return argument("a column of pixels begins at %d in dimension %d, want %d to %d", at[d], d, lower, end-1)
		}
	}
	return nil
}

// Rows are the first elements of the rows of neighbours that a copy moves which begins at an element, in the order in which they lie in
// shared memory. Those of a column run along width, height and depth within the corners, then on to the next image; offsets are how far
// from there the pixels lie.
func (m *Map) Rows(at [MaxRank]int64, offsets [MaxRank - 2]int64) iter.Seq[[MaxRank]int64] {
	if m.Pixels > 0 {
		return func(yield func([MaxRank]int64) bool) { m.column(at, offsets, yield) }
	}
	n := m.Counts()
	return func(yield func([MaxRank]int64) bool) {
		for i := range n[4] * n[3] * n[2] * n[1] {
			e := at
			for d, rest := 1, i; d < m.Rank; d++ {
				e[d] += int64(rest % n[d] * m.Step(d))
				rest /= n[d]
			}
			if !yield(e) {
				return
			}
		}
	}
}

func (m *Map) column(at [MaxRank]int64, offsets [MaxRank - 2]int64, yield func([MaxRank]int64) bool) {
	images := m.Rank - 1
	for range m.Pixels {
		e := at
		for d := 1; d < images; d++ {
			e[d] += offsets[d-1]
		}
		if !yield(e) {
			return
		}
		for d := 1; d <= images; d++ {
			at[d] += int64(m.Step(d))
			if d == images || at[d] < int64(m.Dims[d])+int64(m.Upper[d-1]) {
				break
			}
			at[d] = int64(m.Lower[d-1])
		}
	}
}
