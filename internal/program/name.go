package program

import "strings"

// Name is the step's name in listings and errors: that of its entry or kernel, and of what was fused into it in the order of
// computation, as "fused(matmul, add, relu)".
func (s *Step) Name() string {
	own := s.Entry.Name
	if s.Kernel != nil {
		own = s.Kernel.Name()
	}
	var names []string
	if x, ok := s.Attr.Options.(Expression); ok {
		names = x.names()
	} else {
		names = append(append(s.Attr.Prologue.names(), own), s.Attr.Epilogue.names()...)
		if len(names) == 1 {
			return own
		}
	}
	return "fused(" + strings.Join(names, ", ") + ")"
}

// names are those of the nodes' entries.
func (x *Expression) names() []string {
	names := make([]string, len(x.Nodes))
	for i, n := range x.Nodes {
		names[i] = n.Entry.Name
	}
	return names
}
