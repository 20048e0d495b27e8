// Package recent holds a map that forgets.
package recent

import "maps"

// Map keeps values that were used lately: those that were put last, as many as its limit, and up to as many others. Values
// age in two generations, so that no order has to be maintained. It is not safe for concurrent use.
type Map[V any] struct {
	limit      int
	young, old map[string]V
}

// New returns a map with a limit of at least 1.
func New[V any](limit int) *Map[V] { return &Map[V]{limit: limit, young: map[string]V{}} }

// Get returns the value of a key and makes it young again, where there is room.
func (m *Map[V]) Get(key string) (v V, ok bool) {
	if v, ok = m.young[key]; ok {
		return v, true
	}
	if v, ok = m.old[key]; ok && len(m.young) < m.limit {
		delete(m.old, key)
		m.young[key] = v
	}
	return v, ok
}

// Put sets the value of a key and returns the values that are forgotten.
func (m *Map[V]) Put(key string, v V) (forgotten map[string]V) {
	if len(m.young) >= m.limit {
		forgotten, m.old, m.young = m.old, m.young, make(map[string]V, m.limit)
	}
	delete(m.old, key)
	m.young[key] = v
	return forgotten
}

// Delete forgets a value.
func (m *Map[V]) Delete(key string) {
	delete(m.young, key)
	delete(m.old, key)
}

// Len is the number of values.
func (m *Map[V]) Len() int { return len(m.young) + len(m.old) }

// All returns the values by key.
func (m *Map[V]) All() map[string]V {
	all := maps.Clone(m.young)
	maps.Copy(all, m.old)
	return all
}
