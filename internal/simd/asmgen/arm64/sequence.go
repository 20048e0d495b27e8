package arm64

// item is a value in one copy of an unrolled body.
type item struct {
	v    *value
	copy int
}

// mode is what the body is translated for.
type mode uint8

const (
	whole mode = iota // steps of whole vectors
	tail              // one to three elements
)

// kind is what an event does.
type kind uint8

const (
	compute kind = iota
	load
	store
	guard
	finish // accumulators get their values of the next step
)

// event is an entry of the sequence that a body becomes.
type event struct {
	kind  kind
	items []item
}

// argument is the item of an operand of copy c.
func argument(v *value, c int) item {
	if v.shared() {
		c = 0
	}
	return item{v, c}
}

// sequence lists the events of the body and the uses of items.
func (a *allocator) sequence() {
	b := a.f.body
	emit := func(k kind, per int, v *value) {
		for c := 0; c < a.copies; c += per {
			e := event{kind: k}
			for i := c; i < min(c+per, a.copies); i++ {
				e.items = append(e.items, argument(v, i))
			}
			a.events = append(a.events, e)
		}
	}
	storeAfter := 0
	for i, v := range b.values {
		// All loads of a step come before its stores: y may be an input. So does the guard.
		if v.name == input || v == b.store || v == b.guard {
			storeAfter = i
		}
	}
	if a.mode == tail {
		for _, v := range b.values {
			if v.name == input {
				emit(load, 1, v)
			}
		}
	}
	for i, v := range b.values {
		switch {
		case v.name != input:
			emit(compute, 1, v)
		case a.mode == whole:
			emit(load, 2, v)
		}
		if v == b.guard {
			emit(guard, a.copies, v)
		}
		if b.store != nil && i == storeAfter && a.mode == whole { // that of the tail is the last of all
			emit(store, 2, b.store)
		}
	}
	if len(b.values) == 0 && b.store != nil && a.mode == whole {
		emit(store, 2, b.store) // the same everywhere
	}
	end := event{kind: finish}
	for _, v := range b.next {
		for c := range a.copies {
			end.items = append(end.items, argument(v, c))
		}
	}
	if b.store != nil && a.mode == tail {
		end.items = append(end.items, argument(b.store, 0))
	}
	a.events = append(a.events, end)

	use := func(it item, at int) {
		if u := a.uses[it]; len(u) == 0 || u[len(u)-1] != at {
			a.uses[it] = append(u, at)
		}
	}
	for i, e := range a.events {
		for _, it := range e.items {
			switch e.kind {
			case compute:
				for _, arg := range it.v.args {
					use(argument(arg, it.copy), i)
				}
			case store, guard, finish:
				use(it, i)
			}
		}
		// A guard that stops leaves the accumulators as they were, and so do the lanes beyond the tail.
		if e.kind == guard || e.kind == finish && a.mode == tail {
			for _, old := range b.acc {
				for c := range a.copies {
					use(item{old, c}, i)
				}
			}
		}
	}
}
