package exec

import (
	"fmt"
	"slices"
	"strings"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/onnx/internal/host"
)

// einsum contracts its operands from left to right: each pair is brought to [batch, free, contracted] and multiplied as matrices.

type labelled struct {
	v      *Value
	labels []rune
}

func einsum(c *call) ([]*Value, error) {
	if err := c.need(max(len(c.in), 1)); err != nil {
		return nil, err
	}
	equation := strings.ReplaceAll(c.text("equation", ""), " ", "")
	left, right, explicit := strings.Cut(equation, "->")
	terms := strings.Split(left, ",")
	if len(terms) != len(c.in) {
		return nil, fmt.Errorf("equation %q for %d operands: %w", equation, len(c.in), compute.ErrArgument)
	}
	sizes := map[rune]int{}
	most := 0
	for i, t := range terms {
		if strings.Contains(t, "...") {
			most = max(most, len(c.in[i].shape)-len(t)+3)
		}
	}
	if most < 0 || most > 8 {
		return nil, fmt.Errorf("equation %q: %w", equation, compute.ErrShape)
	}
	var ellipsis []rune // labels that no equation has, for axes of "..."
	for i := range most {
		ellipsis = append(ellipsis, rune(1+i))
	}
	counts := map[rune]int{}
	var operands []labelled
	for i, t := range terms {
		o := labelled{v: c.in[i]}
		before, after, has := strings.Cut(t, "...")
		o.labels = []rune(before)
		if has {
			n := len(c.in[i].shape) - len(before) - len(after)
			if n < 0 {
				return nil, fmt.Errorf("equation %q for %v: %w", equation, c.in[i], compute.ErrShape)
			}
			o.labels = append(append(o.labels, ellipsis[most-n:]...), []rune(after)...)
		}
		if len(o.labels) != len(o.v.shape) {
			return nil, fmt.Errorf("equation %q for %v: %w", equation, o.v, compute.ErrShape)
		}
		for d, l := range o.labels {
			n := o.v.shape[d]
			if have, ok := sizes[l]; ok && have != n && have != 1 && n != 1 {
				return nil, fmt.Errorf("equation %q: %q is both %d and %d: %w", equation, string(l), have, n, compute.ErrShape)
			}
			sizes[l] = max(sizes[l], n)
			if n == 0 {
				sizes[l] = 0
			}
		}
		for _, l := range slices.Compact(slices.Sorted(slices.Values(o.labels))) {
			counts[l] += strings.Count(string(o.labels), string(l))
		}
		operands = append(operands, o)
	}
	var out []rune
	if explicit {
		before, after, has := strings.Cut(right, "...")
		out = []rune(before)
		if has {
			out = append(append(out, ellipsis...), []rune(after)...)
		}
	} else {
		out = slices.Clone(ellipsis)
		var single []rune
		for l, n := range counts {
			if n == 1 && l > 8 {
				single = append(single, l)
			}
		}
		slices.Sort(single)
		out = append(out, single...)
	}
	for _, l := range out {
		if _, ok := sizes[l]; !ok {
			return nil, fmt.Errorf("equation %q: %q is in no operand: %w", equation, string(l), compute.ErrArgument)
		}
	}
	for i := range operands {
		var err error
		if operands[i], err = c.diagonals(operands[i]); err != nil {
			return nil, err
		}
	}
	acc := operands[0]
	for i, o := range operands[1:] {
		needed := slices.Clone(out)
		for _, later := range operands[i+2:] {
			needed = append(needed, later.labels...)
		}
		var err error
		if acc, err = c.contract(acc, o, needed, sizes); err != nil {
			return nil, err
		}
	}
	acc, err := c.summed(acc, out)
	if err != nil {
		return nil, err
	}
	var perm []int
	for _, l := range out {
		perm = append(perm, slices.Index(acc.labels, l))
	}
	return one(c.transposed(acc.v, perm))
}

// diagonals takes those elements where labels that are there twice have the same index.
func (c *call) diagonals(o labelled) (labelled, error) {
	var labels []rune
	var shape, strides []int
	st := host.Strides(o.v.shape)
	for d, l := range o.labels {
		if i := slices.Index(labels, l); i >= 0 {
			strides[i] += st[d]
			continue
		}
		labels, shape, strides = append(labels, l), append(shape, o.v.shape[d]), append(strides, st[d])
	}
	if len(labels) == len(o.labels) {
		return o, nil
	}
	index := host.Index{Shape: shape, From: make([]int, host.Len(shape))}
	host.Walk(shape, strides, 0, func(i, at int) { index.From[i] = at })
	v, err := c.moved(o.v, index)
	if err != nil {
		return o, err
	}
	return labelled{v[0], labels}, nil
}

// summed sums over labels that are not needed.
func (c *call) summed(o labelled, needed []rune) (labelled, error) {
	var axes []int
	var labels []rune
	for d, l := range o.labels {
		if slices.Contains(needed, l) {
			labels = append(labels, l)
		} else {
			axes = append(axes, d)
		}
	}
	if len(axes) == 0 {
		return o, nil
	}
	v, err := c.reduced("Sum", o.v, axes, false)
	if err != nil {
		return o, err
	}
	return labelled{v[0], labels}, nil
}

// contract multiplies two operands and sums over labels that nothing else needs.
func (c *call) contract(a, b labelled, needed []rune, sizes map[rune]int) (labelled, error) {
	a, err := c.summed(a, append(slices.Clone(needed), b.labels...))
	if err == nil {
		b, err = c.summed(b, append(slices.Clone(needed), a.labels...))
	}
	if err != nil {
		return a, err
	}
	var lead, fa, fb, sum []rune
	for _, l := range a.labels {
		switch shared := slices.Contains(b.labels, l); {
		case shared && slices.Contains(needed, l):
			lead = append(lead, l)
		case shared:
			sum = append(sum, l)
		default:
			fa = append(fa, l)
		}
	}
	for _, l := range b.labels {
		if !slices.Contains(a.labels, l) {
			fb = append(fb, l)
		}
	}
	size := func(labels []rune) int {
		n := 1
		for _, l := range labels {
			n *= sizes[l]
		}
		return n
	}
	arranged := func(o labelled, order ...[]rune) (*Value, error) {
		var perm, full, shape []int
		for _, group := range order {
			for _, l := range group {
				perm = append(perm, slices.Index(o.labels, l))
				full = append(full, sizes[l])
			}
			shape = append(shape, size(group))
		}
		v, err := c.transposed(o.v, perm)
		if err == nil {
			v, err = c.expanded(v, full)
		}
		if err != nil {
			return nil, err
		}
		return c.reshaped(v, shape)
	}
	x, err := arranged(a, lead, fa, sum)
	if err != nil {
		return a, err
	}
	y, err := arranged(b, lead, sum, fb)
	if err != nil {
		return a, err
	}
	z, err := c.multiplied(x, y)
	if err != nil {
		return a, err
	}
	labels := slices.Concat(lead, fa, fb)
	var shape []int
	for _, l := range labels {
		shape = append(shape, sizes[l])
	}
	v, err := c.reshaped(z[0], append([]int{}, shape...))
	return labelled{v, labels}, err
}
