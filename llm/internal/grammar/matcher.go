package grammar

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// frame is a place in the rules, and where to go on after its rule.
type frame struct {
	at int
	up *frame
	id uint32
}

type frameKey struct {
	at int
	up *frame
}

// state is where a text may be.
type state struct {
	frames   []*frame     // each at a byte
	complete bool         // the text may end
	next     *[256]*state // nil before the first step
	allowed  []uint64     // a bit for each token that may come next, once somebody has asked
}

// none is the state of what is no beginning of a text.
var none = &state{}

// Matcher follows one text. It belongs to one goroutine.
type Matcher struct {
	grammar *Grammar
	words   *Vocabulary
	places  map[frameKey]*frame
	states  map[string]*state
	state   *state

	// Memory of closed.
	seen   map[frameKey]bool
	frames []*frame
	key    []byte
}

const mostStates = 1000 // that are kept

// NewMatcher returns a matcher at the beginning of a text.
func NewMatcher(g *Grammar, words *Vocabulary) *Matcher {
	m := &Matcher{grammar: g, words: words, seen: map[frameKey]bool{}}
	m.clear()
	m.state = m.closed(func(enter func(at int, up *frame)) {
		for _, at := range g.rules[0] {
			enter(at, nil)
		}
	})
	return m
}

func (m *Matcher) clear() {
	m.places, m.states = map[frameKey]*frame{}, map[string]*state{}
}

// Complete reports whether the text may end here, and Ended whether it must.
func (m *Matcher) Complete() bool { return m.state.complete }

// Ended reports whether nothing may come next.
func (m *Matcher) Ended() bool { return len(m.state.frames) == 0 }

// Allows reports whether a token may come next.
func (m *Matcher) Allows(token int32) bool {
	if m.state.allowed == nil {
		m.state.allowed = m.words.allowed(m)
	}
	return int(token) < len(m.words.bytes) && m.state.allowed[token/64]>>(token%64)&1 == 1
}

// Advance has a token come, and reports whether it may.
func (m *Matcher) Advance(token int32) bool {
	if int(token) >= len(m.words.bytes) || len(m.words.bytes[token]) == 0 {
		return false
	}
	s := m.state
	for _, b := range m.words.bytes[token] {
		s = m.step(s, b)
	}
	if s == none {
		return false
	}
	m.state = s
	if len(m.states) > mostStates {
		m.clear()
		m.state = &state{frames: s.frames, complete: s.complete}
	}
	return true
}

// Save returns a function that goes back to where the text is now.
func (m *Matcher) Save() (restore func()) {
	s := m.state
	return func() { m.state = s }
}

func (m *Matcher) step(s *state, b byte) *state {
	if s.next == nil {
		s.next = new([256]*state)
	}
	if s.next[b] != nil {
		return s.next[b]
	}
	next := m.closed(func(enter func(at int, up *frame)) {
		for _, f := range s.frames {
			if m.grammar.symbols[f.at].class.has(b) {
				enter(f.at+1, f.up)
			}
		}
	})
	s.next[b] = next
	return next
}

// closed is the state that a text is in when it may be at some places: of each the next byte.
func (m *Matcher) closed(places func(enter func(at int, up *frame))) *state {
	frames, complete := m.frames[:0], false
	clear(m.seen)
	var enter func(at int, up *frame)
	enter = func(at int, up *frame) {
		key := frameKey{at, up}
		if m.seen[key] {
			return
		}
		m.seen[key] = true
		switch x := &m.grammar.symbols[at]; {
		case x.kind == class:
			frames = append(frames, m.frame(at, up))
		case x.kind == end && up == nil:
			complete = true
		case x.kind == end:
			enter(up.at, up.up)
		default:
			if m.grammar.symbols[at+1].kind != end { // else the rule returns where this one does
				up = m.frame(at+1, up)
			}
			for _, alternative := range m.grammar.rules[x.rule] {
				enter(alternative, up)
			}
		}
	}
	places(enter)
	m.frames = frames
	if len(frames) == 0 && !complete {
		return none
	}
	slices.SortFunc(frames, func(a, b *frame) int { return cmp.Compare(a.id, b.id) })
	key := m.key[:0]
	for _, f := range frames {
		key = binary.LittleEndian.AppendUint32(key, f.id)
	}
	if complete {
		key = append(key, 1)
	}
	m.key = key
	s := m.states[string(key)]
	if s == nil {
		s = &state{frames: slices.Clone(frames), complete: complete}
		m.states[string(key)] = s
	}
	return s
}

func (m *Matcher) frame(at int, up *frame) *frame {
	key := frameKey{at, up}
	f := m.places[key]
	if f == nil {
		f = &frame{at, up, uint32(len(m.places))}
		m.places[key] = f
	}
	return f
}

// Vocabulary is the tokens of a model, in the order of their bytes.
type Vocabulary struct {
	bytes  [][]byte // by token; empty for those that never come
	sorted []int32
	shared []int // with the token before, in that order
}

// NewVocabulary makes one of n tokens; spell may return nothing.
func NewVocabulary(n int, spell func(token int32) []byte) *Vocabulary {
	v := &Vocabulary{bytes: make([][]byte, n)}
	for i := range v.bytes {
		if v.bytes[i] = spell(int32(i)); len(v.bytes[i]) > 0 {
			v.sorted = append(v.sorted, int32(i))
		}
	}
	slices.SortFunc(v.sorted, func(a, b int32) int { return slices.Compare(v.bytes[a], v.bytes[b]) })
	v.shared = make([]int, len(v.sorted))
	for i := 1; i < len(v.sorted); i++ {
		a, b := v.bytes[v.sorted[i-1]], v.bytes[v.sorted[i]]
		for n := &v.shared[i]; *n < min(len(a), len(b)) && a[*n] == b[*n]; *n++ {
		}
	}
	return v
}

// allowed looks at all tokens: what one shares with the one before is not followed again.
func (v *Vocabulary) allowed(m *Matcher) []uint64 {
	may := make([]uint64, (len(v.bytes)+63)/64)
	states := []*state{m.state} // after each byte of the token before, up to none
	for i, token := range v.sorted {
		states = states[:min(len(states), v.shared[i]+1)]
		for _, b := range v.bytes[token][min(len(states)-1, len(v.bytes[token])):] {
			s := states[len(states)-1]
			if s == none {
				break
			}
			states = append(states, m.step(s, b))
		}
		if len(states) == len(v.bytes[token])+1 && states[len(states)-1] != none {
			may[token/64] |= 1 << (token % 64)
		}
	}
	return may
}
