package decoder

import "container/list"

// pageSize is the tokens of a page.
const pageSize = 16

// pages are those of a cache: who has them, and what they hold, so that sequences that begin alike share them. Pages that nobody has
// keep what they hold until they are needed.
type pages struct {
	all    []page
	free   *list.List // of int32: pages that nobody has, those first that are taken first
	shared map[content]int32
	serial uint64 // of the last content
}

type page struct {
	users  int
	free   *list.Element // in pages.free, while there are no users
	holds  content
	serial uint64 // of what it holds, 0 if it is not shared
}

// content is what a page holds: the keys and values of tokens after the content of another page, which its serial number names, 0 for the
// beginning of a sequence.
type content struct {
	after  uint64
	tokens [pageSize]int32
}

func newPages(n int) *pages {
	p := &pages{all: make([]page, n), free: list.New(), shared: map[content]int32{}}
	for i := range p.all {
		p.all[i].free = p.free.PushBack(int32(i))
	}
	return p
}

// take returns a page with one user, which holds nothing. There must be a free one.
func (p *pages) take() int32 {
	id := p.free.Remove(p.free.Front()).(int32)
	x := &p.all[id]
	if x.serial > 0 {
		delete(p.shared, x.holds)
	}
	*x = page{users: 1}
	return id
}

// find returns a page with this content, with one user more.
func (p *pages) find(c content) (int32, bool) {
	id, ok := p.shared[c]
	if !ok {
		return 0, false
	}
	x := &p.all[id]
	if x.users++; x.free != nil {
		p.free.Remove(x.free)
		x.free = nil
	}
	return id, true
}

// full says what a page holds, so that others find it, and returns the serial number of the content.
func (p *pages) full(id int32, c content) uint64 {
	if other, ok := p.shared[c]; ok { // two sequences have computed the same beside each other
		return p.all[other].serial
	}
	p.serial++
	p.all[id].holds, p.all[id].serial = c, p.serial
	p.shared[c] = id
	return p.serial
}

// forget has a page of one user hold nothing that others find.
func (p *pages) forget(id int32) {
	x := &p.all[id]
	if x.serial > 0 {
		delete(p.shared, x.holds)
		x.holds, x.serial = content{}, 0
	}
}

// release takes a user from each of the pages of a sequence. Later ones are used again earlier, as they are of no use without those before.
func (p *pages) release(ids []int32) {
	for i := len(ids) - 1; i >= 0; i-- {
		x := &p.all[ids[i]]
		if x.users--; x.users > 0 {
			continue
		}
		if x.serial > 0 {
			x.free = p.free.PushBack(ids[i])
		} else {
			x.free = p.free.PushFront(ids[i])
		}
	}
}
