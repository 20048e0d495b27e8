package dist_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"unsafe"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/dist"
)

// short is set where large data would take long, with the race detector: only those of one type are sent then.
var short bool

// countsOf are nothing, one, odd numbers, 4 MiB, and one more element than go into a message, which 4 MiB fill.
func countsOf[E number]() []int {
	fill := 4 << 20 / int(unsafe.Sizeof(*new(E)))
	if _, float := any(*new(E)).(float32); short && !float {
		return []int{0, 1, 7, 1001}
	}
	return []int{0, 1, 7, 1001, fill, fill + 1}
}

type number interface {
	float32 | compute.F16 | compute.BF16 | int32 | uint32 | byte
}

// period is after how many elements a rank's values repeat, so that large data cost little to make and to reduce: a prime, so that no
// part of a message begins where another did.
const period = 10007

// value is element i of rank r, i below period.
func value[E number](r, i int) E {
	h := uint32(i)*2654435761 + uint32(r)*40503 + 12345
	h ^= h >> 15
	h *= 2246822519
	h ^= h >> 13
	f := float32(int32(h)) / (1 << 28) // below 8
	var e E
	switch p := any(&e).(type) {
	case *float32:
		*p = f
		if i%1009 == 5 && r == 1 {
			*p = float32(math.NaN())
		}
	case *compute.F16:
		*p = compute.F16Of(f)
	case *compute.BF16:
		*p = compute.BF16Of(f)
	case *int32:
		*p = int32(h)
	case *uint32:
		*p = h
	case *byte:
		*p = byte(h)
	}
	return e
}

func values[E number](r, n int) []E {
	x := make([]E, n)
	for i := range min(n, period) {
		x[i] = value[E](r, i)
	}
	return repeat(x)
}

// repeat sets x to its first elements, over and over.
func repeat[E number](x []E) []E {
	for n := period; n < len(x); n += period {
		copy(x[n:], x[:period])
	}
	return x
}

// reference sets dst to the reduction in the order of ranks.
func reference[E number](dst []E, op dist.Reduction, all [][]E) {
	for i := range min(len(dst), period) {
		switch p := any(&dst[i]).(type) {
		case *int32:
			*p = int32(integer(op, all, i))
		case *uint32:
			*p = uint32(integer(op, all, i))
		case *float32:
			*p = real(op, all, i)
		case *compute.F16:
			*p = compute.F16Of(real(op, all, i))
		case *compute.BF16:
			*p = compute.BF16Of(real(op, all, i))
		}
	}
	repeat(dst)
}

func integer[E number](op dist.Reduction, all [][]E, i int) int64 {
	acc := int64(0)
	for r, x := range all {
		v := int64(0)
		switch y := any(x[i]).(type) {
		case int32:
			v = int64(y)
		case uint32:
			v = int64(y)
		}
		switch {
		case r == 0:
			acc = v
		case op == dist.Max:
			acc = max(acc, v)
		case op == dist.Min:
			acc = min(acc, v)
		default:
			acc += v
		}
	}
	return acc
}

func real[E number](op dist.Reduction, all [][]E, i int) float32 {
	acc := float32(0)
	for r, x := range all {
		v := float(x[i])
		switch {
		case r == 0:
			acc = v
		case op == dist.Max:
			acc = float32(math.Max(float64(acc), float64(v)))
		case op == dist.Min:
			acc = float32(math.Min(float64(acc), float64(v)))
		default:
			acc += v
		}
	}
	if op == dist.Mean {
		acc /= float32(len(all))
	}
	return acc
}

func float[E number](x E) float32 {
	switch y := any(x).(type) {
	case float32:
		return y
	case compute.F16:
		return y.Float32()
	case compute.BF16:
		return y.Float32()
	}
	return 0
}

// suite makes every collective with every type and count, and compares with what the members' data give. In order, sums of float32
// have the same bits.
func suite(g *dist.Group, inOrder bool) error {
	return errors.Join(
		suiteFor[float32](g, !inOrder, true), suiteFor[compute.F16](g, false, true), suiteFor[compute.BF16](g, false, true),
		suiteFor[int32](g, false, true), suiteFor[uint32](g, false, true), suiteFor[byte](g, false, false))
}

func suiteFor[E number](g *dist.Group, within, reduced bool) error {
	ctx, size := context.Background(), g.Size()
	for _, n := range countsOf[E]() {
		all := make([][]E, size)
		for r := range all {
			all[r] = values[E](r, n)
		}
		mine := append([]E(nil), all[g.Rank()]...)
		fail := func(call string, err error) error {
			return fmt.Errorf("%s of %d %T, rank %d of %d: %w", call, n, *new(E), g.Rank(), size, err)
		}
		var e E
		_, float := any(e).(float32)
		for op := dist.Sum; op <= dist.Min; op++ {
			if n > 1001 && op != dist.Sum && !refused(e, op) {
				continue // the parts of large data do not depend on the reduction
			}
			dst, want := make([]E, n), make([]E, n)
			err := g.AllReduce(ctx, dst, mine, op)
			if bad := refused(e, op); bad {
				if !errors.Is(err, compute.ErrDType) {
					return fail("AllReduce "+op.String(), fmt.Errorf("accepted: %v", err))
				}
				continue
			}
			reference(want, op, all)
			if err == nil {
				err = same(dst, want, all, within && float && (op == dist.Sum || op == dist.Mean))
			}
			if err != nil {
				return fail("AllReduce "+op.String(), err)
			}
			copy(dst, mine) // in place
			if err := g.AllReduce(ctx, dst, dst, op); err != nil {
				return fail("AllReduce in place", err)
			}
			if err := same(dst, want, all, within && float && (op == dist.Sum || op == dist.Mean)); err != nil {
				return fail("AllReduce in place", err)
			}
			part := n / size
			scattered := make([]E, part)
			if err := g.ReduceScatter(ctx, scattered, mine[:part*size], op); err != nil {
				return fail("ReduceScatter", err)
			}
			if err := same(scattered, want[g.Rank()*part:(g.Rank()+1)*part], nil, false); err != nil {
				return fail("ReduceScatter "+op.String(), err)
			}
		}
		gathered, want := make([]E, n*size), []E(nil)
		for _, x := range all {
			want = append(want, x...)
		}
		if err := g.AllGather(ctx, gathered, mine); err != nil {
			return fail("AllGather", err)
		}
		if err := same(gathered, want, nil, false); err != nil {
			return fail("AllGather", err)
		}
		part := n / size
		exchanged := append([]E(nil), mine[:part*size]...)
		if err := g.AllToAll(ctx, exchanged, exchanged); err != nil {
			return fail("AllToAll", err)
		}
		want = want[:0]
		for _, x := range all {
			want = append(want, x[g.Rank()*part:(g.Rank()+1)*part]...)
		}
		if err := same(exchanged, want, nil, false); err != nil {
			return fail("AllToAll", err)
		}
		root := n % size
		x := append([]E(nil), mine...)
		if err := g.Broadcast(ctx, x, root); err != nil {
			return fail("Broadcast", err)
		}
		if err := same(x, all[root], nil, false); err != nil {
			return fail("Broadcast", err)
		}
		if size > 1 { // from the first to the last
			x := append([]E(nil), mine...)
			var err error
			switch g.Rank() {
			case 0:
				err = g.Send(ctx, x, size-1)
			case size - 1:
				if err = g.Recv(ctx, x, 0); err == nil {
					err = same(x, all[0], nil, false)
				}
			}
			if err != nil {
				return fail("Send and Recv", err)
			}
		}
		if err := g.Barrier(ctx); err != nil {
			return fail("Barrier", err)
		}
	}
	return nil
}

// refused reports whether there is no such reduction.
func refused(e any, op dist.Reduction) bool {
	switch e.(type) {
	case byte:
		return true
	case int32, uint32:
		return op == dist.Mean
	}
	return false
}

// same compares bits, NaN with NaN; sums in another order have a bound.
func same[E number](got, want []E, all [][]E, within bool) error {
	for i := range want {
		if got[i] == want[i] {
			continue
		}
		a, b := float(got[i]), float(want[i])
		if a != a && b != b {
			continue
		}
		if within {
			sum := float64(0)
			for _, x := range all {
				sum += math.Abs(float64(float(x[i])))
			}
			if math.Abs(float64(a)-float64(b)) <= float64(len(all))*sum*0x1p-24 {
				continue
			}
		}
		return fmt.Errorf("element %d of %d is %v, not %v", i, len(want), got[i], want[i])
	}
	if len(got) != len(want) {
		return fmt.Errorf("%d elements, not %d", len(got), len(want))
	}
	return nil
}

func unzip(b []byte) []byte {
	r, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil
	}
	b, err = io.ReadAll(r)
	if err != nil {
		return nil
	}
	return b
}
