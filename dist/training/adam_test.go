//go:build !js

package training_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cpu"
	"github.com/wavelane/wavelane/cuda"
	"github.com/wavelane/wavelane/dist"
	"github.com/wavelane/wavelane/dist/training"
	"github.com/wavelane/wavelane/gpu"
	"github.com/wavelane/wavelane/internal/testseed"
)

// shapes are of the parameters: 15, 7 and 16 elements.
var shapes = [][]int{{5, 3}, {7}, {4, 2, 2}}

var options = compute.AdamOptions{LR: 0.01, WeightDecay: 0.1}

// learned is parameters and what Adam knows of them.
type learned struct {
	values [][]float32
	state  *training.State
}

func random(r *rand.Rand) [][]float32 {
	all := make([][]float32, len(shapes))
	for i, s := range shapes {
		n := 1
		for _, d := range s {
			n *= d
		}
		for range n {
			all[i] = append(all[i], float32(r.NormFloat64()))
		}
	}
	return all
}

// gradientsOf returns the gradients of a part of the rows in a step.
func gradientsOf(seed uint64, step, part int) [][]float32 {
	return random(rand.New(rand.NewPCG(seed, uint64(step*100+part))))
}

type opened interface {
	dist.Device
	batch.Device
	Upload(ctx context.Context, data any, shape ...int) (compute.Tensor, error)
	Close() error
}

func open(ctx context.Context, kind, cache string) (opened, error) {
	switch kind {
	case "cuda":
		return cuda.Open(ctx, cuda.WithSoftware(), cuda.WithCache(cache))
	case "gpu":
		return gpu.Open(ctx, gpu.WithSoftware(), gpu.WithAutotune(compute.TuneOff))
	}
	return cpu.Open(ctx)
}

// train makes steps on a member: of the parts of each step, those that are its own.
func train(ctx context.Context, d opened, g *dist.Group, o training.Options, from learned, seed uint64, first, steps, parts int) (to learned, err error) {
	var tensors []compute.Tensor
	for i, v := range from.values {
		t, err := d.Upload(ctx, v, shapes[i]...)
		if err != nil {
			return to, err
		}
		defer t.Close()
		tensors = append(tensors, t)
	}
	adam, err := training.NewAdam(ctx, d, g, tensors, from.state, o)
	if err != nil {
		return to, err
	}
	defer func() { err = errors.Join(err, adam.Close()) }()
	mine := parts / g.Size()
	b, step := batch.New(d), []int32{0}
	data, gradients := make([][][]float32, mine), make([][]batch.Value, mine)
	for p := range mine {
		data[p] = random(rand.New(rand.NewPCG(0, 0)))
		for i, x := range data[p] {
			gradients[p] = append(gradients[p], b.Upload(x, shapes[i]...))
		}
	}
	if err := adam.Record(b, gradients, b.Upload(step, 1), options); err != nil {
		return to, err
	}
	plan, err := b.Compile(ctx)
	if err != nil {
		return to, err
	}
	defer plan.Close()
	for s := first; s < first+steps; s++ {
		step[0] = int32(s)
		for p := range mine {
			for i, x := range gradientsOf(seed, s, g.Rank()*mine+p) {
				copy(data[p][i], x)
			}
		}
		if err := plan.Run(ctx); err != nil {
			return to, err
		}
	}
	if to.state, err = adam.State(ctx); err != nil {
		return to, err
	}
	for _, t := range tensors {
		v := make([]float32, 16)
		v = v[:len(from.values[len(to.values)])]
		if err := t.ReadAsync(v).Await(ctx); err != nil {
			return to, err
		}
		to.values = append(to.values, v)
	}
	if state := adam.Bytes(); !o.Sharded || g.Size() == 1 {
		if state != 2*4*38 {
			err = fmt.Errorf("%d bytes of state for 38 parameters", state)
		}
	} else if own := 3 * 4 * (38/g.Size() + len(shapes)); state > own+4*(5+7+4) {
		err = fmt.Errorf("%d bytes for a share of 38 parameters, more than %d and indices", state, own)
	}
	return to, err
}

// reference makes the same steps with operations on one tensor each, of gradients that are added here in the order of the parts.
func reference(ctx context.Context, d opened, from learned, seed uint64, first, steps, parts int) (learned, error) {
	to := learned{from.values, from.state}
	if to.state == nil {
		to.state = &training.State{}
		for _, v := range from.values {
			to.state.Mean, to.state.Square = append(to.state.Mean, make([]float32, len(v))), append(to.state.Square, make([]float32, len(v)))
		}
	}
	for s := first; s < first+steps; s++ {
		sum := gradientsOf(seed, s, 0)
		for p := 1; p < parts; p++ {
			for i, x := range gradientsOf(seed, s, p) {
				for j, v := range x {
					sum[i][j] += v
				}
			}
		}
		next := learned{state: &training.State{}}
		for i, v := range to.values {
			b := batch.New(d)
			p, m, q := b.AdamWithStep(b.Upload(v), b.Upload(to.state.Mean[i]), b.Upload(to.state.Square[i]), b.Upload(sum[i]), b.Upload([]int32{int32(s)}), options)
			x, y, z := b.Read(p), b.Read(m), b.Read(q)
			if err := b.Run(ctx); err != nil {
				return to, err
			}
			next.values = append(next.values, x.Float32s())
			next.state.Mean, next.state.Square = append(next.state.Mean, y.Float32s()), append(next.state.Square, z.Float32s())
		}
		to = next
	}
	return to, nil
}

// TestAdam trains on groups of several sizes, with buckets of one parameter, of two and of all, whole and sharded, with shards of the data
// and without, and then goes on with the state on a group of another size: always with the bits that operations on whole tensors give
// for the sum over all parts of the data in their order.
func TestAdam(t *testing.T) {
	seed := testseed.Of(t)
	kinds := []string{"cpu", "cuda", "gpu"}
	if testing.Short() {
		kinds = kinds[:1]
	}
	for _, kind := range kinds {
		devices := make([]opened, 4)
		for i := range devices {
			var err error
			devices[i], err = open(t.Context(), kind, t.TempDir())
			require.NoError(t, err)
			defer devices[i].Close()
		}
		// on has a group train.
		on := func(ranks int, o training.Options, from learned, first, steps, parts int) learned {
			of := make([]dist.Device, ranks)
			for i := range of {
				of[i] = devices[i]
			}
			groups, err := dist.Local(of...)
			require.NoError(t, err)
			results, errs := make([]learned, ranks), make(chan error)
			for r, g := range groups {
				go func() {
					var err error
					results[r], err = train(t.Context(), devices[r], g, o, from, seed, first, steps, parts)
					errs <- err
				}()
			}
			for range ranks {
				require.NoError(t, <-errs)
			}
			for _, r := range results[1:] {
				require.Equal(t, results[0], r, "ranks differ")
			}
			return results[0]
		}
		for _, c := range []struct{ ranks, shards, then int }{{1, 0, 1}, {2, 0, 2}, {3, 0, 3}, {4, 4, 1}, {1, 4, 2}, {2, 4, 4}} {
			parts := max(c.ranks, c.shards)
			start := learned{values: random(rand.New(rand.NewPCG(seed, 1)))}
			middle, err := reference(t.Context(), devices[0], start, seed, 1, 2, parts)
			require.NoError(t, err)
			end, err := reference(t.Context(), devices[0], middle, seed, 3, 2, parts)
			require.NoError(t, err)
			for _, sharded := range []bool{false, true} {
				for _, bytes := range []int{1, 70, 0} {
					if kind != "cpu" && bytes != 70 {
						continue
					}
					o := training.Options{Bucket: bytes, Sharded: sharded, Shards: c.shards}
					name := fmt.Sprintf("%s, %+v, %+v", kind, c, o)
					half := on(c.ranks, o, start, 1, 2, parts)
					require.Equal(t, middle, half, name)
					o.Sharded = !sharded // a state is that of all parameters, wherever it was
					require.Equal(t, end, on(c.then, o, half, 3, 2, parts), name)
				}
			}
		}
	}
}

// TestAdamRecordsBuckets looks for the collectives in a plan: the last parameter's gradients first, then those of the other two.
func TestAdamRecordsBuckets(t *testing.T) {
	d, err := cpu.Open(t.Context())
	require.NoError(t, err)
	defer d.Close()
	groups, err := dist.Local(d, d)
	require.NoError(t, err)
	plans := make(chan string, 2)
	for _, g := range groups {
		go func() {
			plans <- func() string {
				var tensors []compute.Tensor
				b := batch.New(d)
				var gradients []batch.Value
				for _, s := range shapes {
					x, err := d.Upload(t.Context(), make([]float32, map[int]int{5: 15, 7: 7, 4: 16}[s[0]]), s...)
					if err != nil {
						return err.Error()
					}
					defer x.Close()
					tensors = append(tensors, x)
					gradients = append(gradients, b.Scale(b.Import(x), 2))
				}
				adam, err := training.NewAdam(t.Context(), d, g, tensors, nil, training.Options{Bucket: 64})
				if err != nil {
					return err.Error()
				}
				defer adam.Close()
				if err := adam.Record(b, [][]batch.Value{gradients}, b.Upload([]int32{1}), options); err != nil {
					return err.Error()
				}
				plan, err := b.Compile(t.Context())
				if err != nil {
					return err.Error()
				}
				defer plan.Close()
				return plan.String()
			}()
		}()
	}
	require.Regexp(t, `(?s)\[16\] = all_reduce.*\[22\] = all_reduce.*adam`, <-plans)
	<-plans
}

func TestAdamErrors(t *testing.T) {
	d, err := cpu.Open(t.Context())
	require.NoError(t, err)
	defer d.Close()
	groups, err := dist.Local(d, d)
	require.NoError(t, err)
	x, err := d.Upload(t.Context(), []float32{1, 2})
	require.NoError(t, err)
	n, err := d.Upload(t.Context(), []int32{1, 2})
	require.NoError(t, err)
	scalar, err := d.Upload(t.Context(), []float32{1}, []int{}...)
	require.NoError(t, err)
	for want, bad := range map[error][]func() error{
		compute.ErrArgument: {
			func() error {
				_, err := training.NewAdam(t.Context(), d, nil, []compute.Tensor{x}, nil, training.Options{})
				return err
			},
			func() error {
				_, err := training.NewAdam(t.Context(), nil, groups[0], []compute.Tensor{x}, nil, training.Options{})
				return err
			},
			func() error {
				_, err := training.NewAdam(t.Context(), d, groups[0], nil, nil, training.Options{})
				return err
			},
			func() error {
				_, err := training.NewAdam(t.Context(), d, groups[0], []compute.Tensor{nil}, nil, training.Options{})
				return err
			},
			func() error {
				_, err := training.NewAdam(t.Context(), d, groups[0], []compute.Tensor{x}, nil, training.Options{Shards: 3})
				return err
			},
			func() error {
				_, err := training.NewAdam(t.Context(), d, groups[0], []compute.Tensor{x}, nil, training.Options{Bucket: -1})
				return err
			},
			func() error {
				a, err := training.NewAdam(t.Context(), d, groups[0], []compute.Tensor{x}, nil, training.Options{})
				require.NoError(t, err)
				b := batch.New(d)
				return errors.Join(a.Record(b, nil, b.Upload([]int32{1})), a.Close())
			},
			func() error {
				a, err := training.NewAdam(t.Context(), d, groups[0], []compute.Tensor{x}, nil, training.Options{})
				require.NoError(t, err)
				b := batch.New(d)
				return errors.Join(a.Record(b, [][]batch.Value{{}}, b.Upload([]int32{1})), a.Close())
			},
		},
		compute.ErrDType: {
			func() error {
				_, err := training.NewAdam(t.Context(), d, groups[0], []compute.Tensor{n}, nil, training.Options{})
				return err
			},
		},
		compute.ErrShape: {
			func() error {
				state := &training.State{Mean: [][]float32{{1, 2}}, Square: [][]float32{{1}}}
				_, err := training.NewAdam(t.Context(), d, groups[0], []compute.Tensor{x}, state, training.Options{})
				return err
			},
			func() error {
				_, err := training.NewAdam(t.Context(), d, groups[0], []compute.Tensor{scalar}, nil, training.Options{Sharded: true})
				return err
			},
		},
	} {
		for i, call := range bad {
			require.ErrorIs(t, call(), want, i)
		}
	}
	require.NoError(t, errors.Join(slices.Collect(func(yield func(error) bool) {
		for _, c := range []compute.Tensor{x, n, scalar} {
			yield(c.Close())
		}
	})...))
}
