package softgpu

import "slices"

// ranges are pieces of memory by address; they do not overlap.
type ranges[T interface{ extent() (at, bytes uint64) }] struct{ list []T }

// position is the index of the last piece that begins at or before the address; -1 for none.
func (r *ranges[T]) position(at uint64) int {
	i, found := slices.BinarySearchFunc(r.list, at, func(p T, at uint64) int {
		switch begin, _ := p.extent(); {
		case begin < at:
			return -1
		case begin > at:
			return 1
		}
		return 0
	})
	if found {
		return i
	}
	return i - 1
}

func (r *ranges[T]) insert(p T) {
	at, _ := p.extent()
	r.list = slices.Insert(r.list, r.position(at)+1, p)
}

// at is the piece that begins at the address.
func (r *ranges[T]) at(at uint64) (p T, ok bool) {
	if i := r.position(at); i >= 0 {
		if begin, _ := r.list[i].extent(); begin == at {
			return r.list[i], true
		}
	}
	return p, false
}

// around is the piece that all n bytes at the address lie in.
func (r *ranges[T]) around(at, n uint64) (p T, ok bool) {
	if i := r.position(at); i >= 0 {
		begin, size := r.list[i].extent()
		if off := at - begin; off <= size && n <= size-off {
			return r.list[i], true
		}
	}
	return p, false
}

func (r *ranges[T]) remove(at uint64) {
	if i := r.position(at); i >= 0 {
		r.list = slices.Delete(r.list, i, i+1)
	}
}
