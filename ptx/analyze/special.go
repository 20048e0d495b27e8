package analyze

import "strings"

// special is the value of a special register.
func (m *machine) special(name string) *vec {
	base, dim, _ := strings.Cut(name, ".")
	axis := strings.Index("xyz", dim)
	per := func(f func(t int) int64) *vec {
		c := make([]int64, m.threads)
		for t := range c {
			c[t] = f(t)
		}
		return &vec{c: shrink(c)}
	}
	uniform := func(block bool) *vec {
		return of(m.symbol(name, func(s *symbol) { s.block = block }))
	}
	lane := func(f func(lane int) uint32) *vec { return per(func(t int) int64 { return int64(int32(f(t % 32))) }) }
	switch base {
	case "%tid":
		return per(func(t int) int64 {
			return int64([]int{t % m.dims[0], t / m.dims[0] % m.dims[1], t / m.dims[0] / m.dims[1], 0}[axis])
		})
	case "%ntid":
		return constant(int64([]int{m.dims[0], m.dims[1], m.dims[2], 1}[axis]))
	case "%laneid":
		return per(func(t int) int64 { return int64(t % 32) })
	case "%warpid":
		return per(func(t int) int64 { return int64(t / 32) })
	case "%nwarpid":
		return uniform(false)
	case "%nctaid":
		if g := m.o.Grid; g[0] > 0 {
			return constant(int64(max(1, []int{g[0], g[1], g[2], 1}[axis])))
		}
		return uniform(false)
	case "%ctaid":
		if m.o.block != nil {
			return constant(int64([]int{m.o.block[0], m.o.block[1], m.o.block[2], 0}[axis]))
		}
		return uniform(true)
	case "%clusterid", "%cluster_ctaid", "%cluster_ctarank", "%smid":
		return uniform(true)
	case "%lanemask_eq":
		return lane(func(l int) uint32 { return 1 << l })
	case "%lanemask_lt":
		return lane(func(l int) uint32 { return 1<<l - 1 })
	case "%lanemask_le":
		return lane(func(l int) uint32 { return uint32(uint64(2)<<l - 1) })
	case "%lanemask_gt":
		return lane(func(l int) uint32 { return ^uint32(uint64(2)<<l - 1) })
	case "%lanemask_ge":
		return lane(func(l int) uint32 { return ^uint32(1<<l - 1) })
	case "%clock", "%clock_hi", "%clock64", "%globaltimer", "%globaltimer_lo", "%globaltimer_hi":
		return m.fresh(perThread, true, false)
	}
	if strings.HasPrefix(base, "%pm") {
		return m.fresh(perThread, true, false)
	}
	return uniform(false)
}
