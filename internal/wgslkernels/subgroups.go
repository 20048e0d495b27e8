package wgslkernels

import (
	"fmt"
)

// tree says how the threads of a task merge what they have; see tree.wgsl.
type tree struct {
	Acc              string // what is merged
	Lanes, Workgroup int
	Strides          []int
	Subgroups        bool
	Together         string // the built-in function that merges for a whole subgroup, or none
}

// largestSubgroup is that of any implementation of WGSL.
const largestSubgroup = 128

// newTree merges values of type acc over a number of lanes; merge is the text that does it for a and b, if it is known.
func newTree(acc, merge string, lanes, workgroup int, subgroups bool) tree {
	t := tree{Acc: acc, Lanes: lanes, Workgroup: workgroup, Strides: strides(lanes), Subgroups: subgroups && lanes > 1}
	if lanes >= largestSubgroup { // a subgroup has no other task
		t.Together = map[string]string{"a + b": "subgroupAdd", "max(a, b)": "subgroupMax"}[merge]
	}
	return t
}

// mergeOf is how the statistics of rows of that type are merged, if it is known: those of one float are sums.
func mergeOf(acc string) string {
	if acc == "f32" {
		return "a + b"
	}
	return ""
}

func (t tree) enable() []string {
	if t.Subgroups {
		return []string{"subgroups"}
	}
	return nil
}

// key is what keys of kernels say about a tree beside its sizes.
func (t tree) key() string {
	if t.Subgroups {
		return "/subgroups"
	}
	return ""
}

// inSubgroups chooses between the ways of merging what lanes threads of each task have. The tree in workgroup memory is the
// default: subgroups win on some GPUs and lose on others, which measuring tells.
func (s *step) inSubgroups(class, name string, w work, lanes int) bool {
	if !s.caps.Subgroups || lanes == 1 {
		return false
	}
	return s.Choose(class, fmt.Sprintf("%s %dx%d", name, w.tasks(), min(w.chunk, w.cols)), []string{"tree", "subgroups"}) == 1
}
