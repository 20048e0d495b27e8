package misuse

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
)

// await turns what a function returned into an error and results. Tensors and plans are closed.
func (a *arguments) await(out []reflect.Value) (err error, results []any) {
	for _, v := range out {
		switch x := v.Interface().(type) {
		case *compute.Future:
			err = errors.Join(err, x.AwaitOrAbandon(context.Background()))
		case error:
			err = errors.Join(err, x)
		case compute.Tensor:
			if !reflect.ValueOf(x).IsNil() {
				defer x.Close()
			}
		case *batch.Plan:
			if x != nil {
				a.plans = append(a.plans, x)
			}
		case batch.Value:
			a.values = append(a.values, x)
		case []batch.Value:
			a.values = append(a.values, x...)
		case *batch.Result:
			a.read = append(a.read, x)
		case *batch.Kept:
			a.kept = append(a.kept, x)
		}
	}
	return err, results
}

// method calls a method of a value with drawn arguments.
func (a *arguments) method(of any, m reflect.Method) (error, []any) {
	f := reflect.ValueOf(of).MethodByName(m.Name)
	return a.await(f.Call(a.list(f.Type(), 0)))
}

// text is the call, for failures.
func (a *arguments) text(m reflect.Method) string {
	return fmt.Sprintf("%s, dims %v, length %d, hostile %d, special %v", m.Name, a.dims, a.length, a.hostile, a.special)
}

// agree compares the outcomes of one call on several devices.
func agree(n *tally, m reflect.Method, a *arguments, on []*machine, got []outcome, numbers bool) (wrong string) {
	var b strings.Builder
	failed, differ := false, false
	for i, o := range got {
		n.add(on[i].name, o)
		if strings.HasPrefix(o.class, "!") {
			failed = true
		}
		differ = differ || o.class != got[0].class
	}
	// The CPU writes results where they are read: its limit does not count them.
	memory := slices.ContainsFunc(got, func(o outcome) bool { return o.class == "memory" })
	if !failed && (a.timed || memory) {
		return ""
	}
	if !failed && !differ && (!numbers || got[0].class != "ok") {
		return ""
	}
	if !failed && !differ {
		for i, o := range got[1:] {
			if where := difference(got[0].results, o.results, a.special); where != "" {
				fmt.Fprintf(&b, "%s and %s: %s\n", on[0].name, on[i+1].name, where)
			}
		}
		if b.Len() == 0 {
			return ""
		}
	}
	for i, o := range got {
		fmt.Fprintf(&b, "%s: %s: %v\n", on[i].name, o.class, o.err)
	}
	n.bad++
	return a.text(m) + "\n" + b.String()
}

// difference compares slices of results.
func difference(a, b []any, special bool) string {
	for i := range a {
		x, y := reflect.ValueOf(a[i]), reflect.ValueOf(b[i])
		if x.Kind() != reflect.Slice || y.Kind() != reflect.Slice || x.Type() != y.Type() || x.Len() != y.Len() {
			if x.Kind() != y.Kind() {
				return fmt.Sprintf("result %d is a %v or a %v", i, x, y)
			}
			continue
		}
		floats, ok := a[i].([]float32)
		if !ok {
			continue
		}
		for k, p := range floats {
			q := b[i].([]float32)[k]
			if !near(float64(p), float64(q), special) {
				return fmt.Sprintf("element %d of slice %d is %v or %v", k, i, p, q)
			}
		}
	}
	return ""
}

// near is a coarse comparison: package conformance does the fine one. Numbers of extreme size may overflow in one order of operations
// and not in another.
func near(p, q float64, special bool) bool {
	if math.IsNaN(p) && math.IsNaN(q) || p == q {
		return true
	}
	if special {
		return true
	}
	return math.Abs(p-q) <= 2e-2*max(1, math.Abs(p), math.Abs(q))
}

// methods lists the exported methods of a type, but for some.
func methods(t reflect.Type, but ...string) (all []reflect.Method) {
	for i := range t.NumMethod() {
		if m := t.Method(i); !slices.Contains(but, m.Name) {
			all = append(all, m)
		}
	}
	return all
}

// everywhere gives every device the same call.
func everywhere(r *rand.Rand, all []*machine, call func(a *arguments) (error, []any)) (got []outcome, last *arguments) {
	s1, s2 := r.Uint64(), r.Uint64()
	for _, m := range all {
		last = newArguments(rand.New(rand.NewPCG(s1, s2)), m)
		a := last
		got = append(got, guarded(func() (error, []any) { return call(a) }))
		a.cancel()
	}
	return got, last
}

// Every operation on slices.
func TestOperations(t *testing.T) {
	all := machines(t)
	list := methods(reflect.TypeFor[compute.Ops]())
	var n tally
	defer n.log(t)
	each(t, 30_000, 30*time.Minute, func(r *rand.Rand) string {
		m := list[r.IntN(len(list))]
		got, a := everywhere(r, all, func(a *arguments) (error, []any) {
			err, _ := a.method(a.on.ops, m)
			return err, a.slices
		})
		return agree(&n, m, a, all, got, true)
	})
}

// Every method of a batch, one to three of them in a batch that runs afterwards.
func TestBatches(t *testing.T) {
	all := machines(t)
	list := methods(reflect.TypeFor[*batch.Batch]())
	var n tally
	defer n.log(t)
	each(t, 30_000, 30*time.Minute, func(r *rand.Rand) string {
		var chosen []reflect.Method
		for range 1 + r.IntN(3) {
			chosen = append(chosen, list[r.IntN(len(list))])
		}
		got, a := everywhere(r, all, func(a *arguments) (error, []any) {
			a.batch = batch.New(a.on.device)
			defer func() {
				for _, p := range a.plans {
					p.Close()
				}
				for _, k := range a.kept {
					if x := k.Tensor(); x != nil {
						x.Close()
					}
				}
			}()
			for _, d := range append(slices.Repeat([]compute.DType{compute.Float32}, 6), compute.Int32, compute.Int32, compute.Float16) {
				s := a.shape()
				if size, err := elements(s); err == nil {
					a.values = append(a.values, a.batch.Upload(a.data(d, size), s...))
				}
			}
			a.values = append(a.values, a.batch.Scalar(2))
			before := len(a.values)
			var err error
			for _, m := range chosen {
				e, _ := a.method(a.batch, m)
				err = errors.Join(err, e)
			}
			var results []*batch.Result
			for _, v := range a.values[min(before, len(a.values)):] {
				if v != (batch.Value{}) {
					results = append(results, a.batch.Read(v))
				}
			}
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			if err = errors.Join(err, a.batch.Run(ctx)); err != nil {
				return err, nil
			}
			var data []any
			for _, x := range results {
				d, err := x.Data()
				if err != nil {
					return err, nil
				}
				data = append(data, d)
			}
			return nil, data
		})
		names := chosen[0]
		for _, m := range chosen[1:] {
			names.Name += ", " + m.Name
		}
		return agree(&n, names, a, all, got, len(chosen) == 1)
	})
}

// elements is the number of elements of a shape that can be uploaded.
func elements(shape []int) (int, error) {
	n := 1
	for _, d := range shape {
		if d < 0 || d > 1<<20 {
			return 0, compute.ErrShape
		}
		if n *= d; n > 1<<20 {
			return 0, compute.ErrShape
		}
	}
	return n, nil
}
