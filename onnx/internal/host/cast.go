package host

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/wavelane/wavelane/compute"
)

// Cast converts elements. Floats become the nearest of their type, or the largest one with saturate where that type is one of 8 bits;
// integers keep their lowest bits. Round is how Float8E8M0 is rounded: up, down or nearest.
func Cast(t *Tensor, to Kind, saturate bool, round string) (*Tensor, error) {
	switch {
	case t.Kind == to:
		return t, nil
	case t.Kind == Bool && to == Float:
		out := New(to, t.Shape...)
		z := out.Data.([]float32)
		for i, b := range t.Data.([]bool) {
			if b {
				z[i] = 1
			}
		}
		return out, nil
	case t.Kind == String:
		return fromTexts(t, to)
	case to == String:
		return toTexts(t)
	case to == F8E8M0:
		return toE8M0(t, saturate, round), nil
	case t.Kind.IsFloat() || to.IsFloat() || to == Bool:
		if f := smallFloats[to]; f != nil {
			x := t.Floats()
			out := New(to, t.Shape...)
			for i, v := range x {
				out.Data.([]uint8)[i] = f.encode(v, saturate)
			}
			return out, nil
		}
		if (t.Kind == Int64 || t.Kind == Uint64) && to == Bool {
			return FromInts(to, t.Ints(), t.Shape...), nil
		}
		return FromFloats(to, t.Floats(), t.Shape...), nil
	}
	return FromInts(to, t.Ints(), t.Shape...), nil
}

func toE8M0(t *Tensor, saturate bool, round string) *Tensor {
	out := New(F8E8M0, t.Shape...)
	z := out.Data.([]uint8)
	for i, x := range t.Floats() {
		x = math.Abs(x)
		switch {
		case x != x:
			z[i] = 255
			continue
		case math.IsInf(x, 0):
			if z[i] = 255; saturate {
				z[i] = 254
			}
			continue
		case x == 0:
			continue
		}
		fraction, exponent := math.Frexp(x) // x = fraction·2^exponent, fraction in [½, 1)
		e := exponent - 1
		switch round {
		case "up":
			if fraction > 0.5 {
				e++
			}
		case "nearest":
			if fraction >= 0.75 {
				e++
			}
		}
		switch e += 127; {
		case e > 254 && !saturate:
			z[i] = 255
		default:
			z[i] = uint8(min(max(e, 0), 254))
		}
	}
	return out
}

func fromTexts(t *Tensor, to Kind) (*Tensor, error) {
	s := t.Data.([]string)
	if to.IsInteger() {
		n := make([]int64, len(s))
		for i, x := range s {
			v, err := strconv.ParseInt(strings.TrimSpace(x), 10, 64)
			if err != nil {
				return nil, fmt.Errorf("text %q is no integer: %w", x, compute.ErrArgument)
			}
			n[i] = v
		}
		return FromInts(to, n, t.Shape...), nil
	}
	f := make([]float64, len(s))
	for i, x := range s {
		v, err := strconv.ParseFloat(strings.TrimSpace(x), 64)
		if err != nil {
			return nil, fmt.Errorf("text %q is no number: %w", x, compute.ErrArgument)
		}
		f[i] = v
	}
	return FromFloats(to, f, t.Shape...), nil
}

// toTexts writes numbers as NumPy does: the fewest digits that give the same number back.
func toTexts(t *Tensor) (*Tensor, error) {
	out := New(String, t.Shape...)
	s := out.Data.([]string)
	if t.Kind.IsInteger() {
		for i, v := range t.Ints() {
			if s[i] = strconv.FormatInt(v, 10); t.Kind == Uint64 {
				s[i] = strconv.FormatUint(uint64(v), 10)
			}
		}
		return out, nil
	}
	if b, ok := t.Data.([]bool); ok {
		for i, v := range b {
			s[i] = map[bool]string{true: "True", false: "False"}[v]
		}
		return out, nil
	}
	bits := 32
	if t.Kind == Double {
		bits = 64
	}
	for i, v := range t.Floats() {
		switch {
		case v != v:
			s[i] = "NaN"
		case math.IsInf(v, 1):
			s[i] = "INF"
		case math.IsInf(v, -1):
			s[i] = "-INF"
		default:
			s[i] = strconv.FormatFloat(v, 'g', -1, bits)
		}
	}
	return out, nil
}
