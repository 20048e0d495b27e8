//go:build !js

package main

import (
	"math"
	"slices"
)

type point struct{ x, y float64 }

func (p point) minus(q point) point   { return point{p.x - q.x, p.y - q.y} }
func (p point) dot(q point) float64   { return p.x*q.x + p.y*q.y }
func (p point) cross(q point) float64 { return p.x*q.y - p.y*q.x }

// rectangle lies in any direction: axis is that of its width, to the right.
type rectangle struct {
	center, axis point
	w, h         float64
}

// hull is the convex hull, by Andrew's monotone chain.
func hull(points []point) []point {
	slices.SortFunc(points, func(a, b point) int {
		switch {
		case a.x != b.x && a.x < b.x || a.x == b.x && a.y < b.y:
			return -1
		case a == b:
			return 0
		}
		return 1
	})
	var out []point
	for range 2 {
		start := len(out)
		for _, p := range points {
			for len(out) >= start+2 && out[len(out)-1].minus(out[len(out)-2]).cross(p.minus(out[len(out)-2])) <= 0 {
				out = out[:len(out)-1]
			}
			out = append(out, p)
		}
		out = out[:len(out)-1]
		slices.Reverse(points)
	}
	return out
}

// smallest is the rectangle of the least area around points: one of its sides lies on a side of their hull.
func smallest(points []point) rectangle {
	h := hull(points)
	best, least := rectangle{}, math.Inf(1)
	for i, p := range h {
		side := h[(i+1)%len(h)].minus(p)
		length := math.Hypot(side.x, side.y)
		u := point{1, 0}
		if length > 0 {
			u = point{side.x / length, side.y / length}
		}
		v := point{-u.y, u.x}
		u0, u1, v0, v1 := math.Inf(1), math.Inf(-1), math.Inf(1), math.Inf(-1)
		for _, q := range h {
			u0, u1 = min(u0, q.dot(u)), max(u1, q.dot(u))
			v0, v1 = min(v0, q.dot(v)), max(v1, q.dot(v))
		}
		if area := (u1 - u0) * (v1 - v0); area < least {
			cu, cv := (u0+u1)/2, (v0+v1)/2
			least, best = area, rectangle{point{cu*u.x + cv*v.x, cu*u.y + cv*v.y}, u, u1 - u0, v1 - v0}
		}
	}
	if math.Abs(best.axis.x) < math.Abs(best.axis.y) { // the width is along the nearer axis of the picture
		best.axis, best.w, best.h = point{-best.axis.y, best.axis.x}, best.h, best.w
	}
	if best.axis.x < 0 {
		best.axis = point{-best.axis.x, -best.axis.y}
	}
	return best
}
