package gemm

// pack copies steps×lanes elements, lane l and step p at x[l*lane+p*step], to a panel: lane l and step p at dst[p*width+l].
// Lanes up to width, if there are more, become finite copies of others or 0. Up to s.lanes elements after the panel may be
// overwritten unless width is a multiple of s.lanes.
func (s *shape) pack(dst, x []float32, lane, step, lanes, steps, width int) {
	if lanes == 0 || steps == 0 {
		return
	}
	switch {
	case lane == 1:
		_, _ = dst[steps*width-1], x[(steps-1)*step+lanes-1]
		s.copyRim(&dst[0], &x[0], step, lanes, width, steps)
	case step == 1:
		s.packTransposed(dst, x, lane, lanes, steps, width)
	default:
		for p := range steps {
			to := dst[p*width : (p+1)*width]
			at := p * step
			for l := range lanes {
				to[l] = x[at]
				at += lane
			}
			clear(to[lanes:])
		}
	}
}

// packB packs cols columns of B, column j and step p at x[j*lane+p*step], in panels of nr; the last is as wide as its columns
// rounded up to vectors.
func (s *shape) packB(dst []float32, m matrix, lane, step, cols, steps int) {
	if m.x == nil {
		s.packHalf(dst, m.Half, lane, step, cols, steps)
		return
	}
	x, j := m.x, 0
	if whole := cols / s.nr; lane == 1 && whole > 0 {
		j = whole * s.nr
		_, _ = dst[j*steps-1], x[(steps-1)*step+j-1]
		s.copyPanels(&dst[0], &x[0], step, whole, steps)
	}
	for ; j < cols; j += s.nr {
		n := min(s.nr, cols-j)
		s.pack(dst[j*steps:], x[j*lane:], lane, step, n, steps, roundUp(n, s.lanes))
	}
}

// maxLanes is the most lanes of a tier.
const maxLanes = 16

// packTransposed packs lanes whose steps are contiguous. The last group goes first: where it reaches into the first lanes of
// the next step these are written after it.
func (s *shape) packTransposed(dst, x []float32, lane, lanes, steps, width int) {
	_ = x[(lanes-1)*lane+steps-1]
	var rows [maxLanes]*float32
	for l := (width - 1) / s.lanes * s.lanes; l >= 0; l -= s.lanes {
		_ = dst[(steps-1)*width+l+s.lanes-1]
		for i := range s.lanes {
			rows[i] = &x[min(l+i, lanes-1)*lane]
		}
		s.transpose(&dst[l], &rows[0], width, steps)
	}
}
