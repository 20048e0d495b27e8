package training

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/dist"
	"github.com/wavelane/wavelane/internal/device"
	"github.com/wavelane/wavelane/internal/program"
)

// DefaultBucket is how many bytes of gradients a bucket has at least, unless [Options] say otherwise.
const DefaultBucket = 32 << 20

// Options say how ranks train together. All ranks have the same.
type Options struct {
	// Bucket is how many bytes of gradients are sent together: a bucket takes them until it has as many. 0 is [DefaultBucket].
	Bucket int

	// Sharded has each rank keep the optimiser's state for its part of the parameters only, and update that part (ZeRO, stage 1: Rajbhandari
	// et al., 2020): two numbers for each of its parameters instead of for all, and a copy of its part. The traffic is the
	// same, in two messages for a bucket.
	Sharded bool

	// Shards is 0, or a multiple of the number of ranks: see the package's documentation.
	Shards int
}

// State is what Adam knows of the gradients of each parameter: running means of them and of their squares.
type State struct{ Mean, Square [][]float32 }

// Adam updates parameters in place. It is for one goroutine.
type Adam struct {
	group      *dist.Group
	parameters []compute.Tensor
	sizes      []int // of parameters, in elements
	buckets    []*bucket
	options    Options

	rows map[int]compute.Tensor // of a sharded one: the numbers from 0 to below n
	own  []compute.Tensor       // to close
}

// bucket is parameters whose gradients are sent together.
type bucket struct {
	members []int // of parameters, the last one first
	size    int   // of all ranks' parts, in elements: the members' and zeros
	state   []slot
}

// slot is a tensor with its means and squares: a member of a bucket, or this rank's part of the bucket.
type slot struct{ value, mean, square compute.Tensor }

// NewAdam returns an optimiser for Float32 tensors of a device, which have the same values on all ranks. They stay the caller's, who changes
// them no other way as long as the optimiser is in use. A nil state is that before the first step.
//
// With a state or sharded it reads the parameters. Errors wrap compute.ErrDType, compute.ErrShape and compute.ErrArgument.
func NewAdam(ctx context.Context, d dist.Device, g *dist.Group, parameters []compute.Tensor, state *State, o Options) (_ *Adam, err error) {
	if g == nil || d == nil || len(parameters) == 0 || slices.Contains(parameters, nil) {
		return nil, fmt.Errorf("adam: a nil group, device or parameter, or no parameters: %w", compute.ErrArgument)
	}
	if o.Shards < 0 || o.Shards%g.Size() != 0 || o.Bucket < 0 {
		return nil, fmt.Errorf("adam: %d shards for %d ranks, buckets of %d bytes: %w", o.Shards, g.Size(), o.Bucket, compute.ErrArgument)
	}
	if o.Bucket == 0 {
		o.Bucket = DefaultBucket
	}
	o.Sharded = o.Sharded && g.Size() > 1
	a := &Adam{group: g, parameters: slices.Clone(parameters), options: o, rows: map[int]compute.Tensor{}}
	for i, p := range parameters {
		if p.DType() != compute.Float32 {
			return nil, fmt.Errorf("adam: parameter %d of type %v: %w", i, p.DType(), compute.ErrDType)
		}
		a.sizes = append(a.sizes, program.Len(p.Shape()))
	}
	if err := a.check(state); err != nil {
		return nil, err
	}
	for i := len(parameters) - 1; i >= 0; i-- {
		last := len(a.buckets) - 1
		if last < 0 || 4*a.buckets[last].size >= o.Bucket {
			a.buckets = append(a.buckets, new(bucket))
			last++
		}
		b := a.buckets[last]
		b.members = append(b.members, i)
		b.size += a.sizes[i]
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("adam: %w", errors.Join(err, a.Close()))
		}
	}()
	for _, b := range a.buckets {
		if o.Sharded {
			err = a.placeShard(ctx, d, b, state)
		} else {
			err = a.place(ctx, d, b, state)
		}
		if err != nil {
			return nil, err
		}
	}
	return a, nil
}

func (a *Adam) check(state *State) error {
	if state == nil {
		return nil
	}
	for _, list := range [][][]float32{state.Mean, state.Square} {
		fits := len(list) == len(a.sizes)
		for i := 0; fits && i < len(list); i++ {
			fits = len(list[i]) == a.sizes[i]
		}
		if !fits {
			return fmt.Errorf("adam: a state of other parameters: %w", compute.ErrShape)
		}
	}
	return nil
}

// place makes the state of every member of a bucket.
func (a *Adam) place(ctx context.Context, d dist.Device, b *bucket, state *State) error {
	for _, i := range b.members {
		mean, square := make([]float32, a.sizes[i]), make([]float32, a.sizes[i])
		if state != nil {
			mean, square = state.Mean[i], state.Square[i]
		}
		s, err := a.upload(ctx, d, a.parameters[i].Shape(), mean, square)
		if err != nil {
			return err
		}
		b.state = append(b.state, slot{a.parameters[i], s[0], s[1]})
	}
	return nil
}

// placeShard makes this rank's part of a bucket, and what writing the whole into the parameters needs.
func (a *Adam) placeShard(ctx context.Context, d dist.Device, b *bucket, state *State) error {
	n := a.group.Size()
	part := (b.size + n - 1) / n
	b.size = part * n
	var whole [3][]float32
	for k := range whole {
		whole[k] = make([]float32, 0, b.size)
	}
	for _, i := range b.members {
		value := make([]float32, a.sizes[i])
		if err := a.parameters[i].ReadAsync(value).Await(ctx); err != nil {
			return err
		}
		whole[0] = append(whole[0], value...)
		if state != nil {
			whole[1], whole[2] = append(whole[1], state.Mean[i]...), append(whole[2], state.Square[i]...)
		}
		if err := a.number(ctx, d, a.parameters[i].Shape()); err != nil {
			return err
		}
	}
	for k := range whole {
		from := a.group.Rank() * part
		whole[k] = whole[k][:b.size][from : from+part] // zeros follow
	}
	s, err := a.upload(ctx, d, []int{part}, whole[:]...)
	if err == nil {
		b.state = []slot{{s[0], s[1], s[2]}}
	}
	return err
}

// number makes the indices of the rows of a shape.
func (a *Adam) number(ctx context.Context, d dist.Device, shape []int) error {
	if len(shape) == 0 {
		return fmt.Errorf("a sharded parameter without dimensions: %w", compute.ErrShape)
	}
	if a.rows[shape[0]] != nil {
		return nil
	}
	all := make([]int32, shape[0])
	for i := range all {
		all[i] = int32(i)
	}
	t, err := a.one(ctx, d, all, shape[:1])
	a.rows[shape[0]] = t
	return err
}

func (a *Adam) upload(ctx context.Context, d dist.Device, shape []int, values ...[]float32) (all []compute.Tensor, err error) {
	for _, v := range values {
		t, err := a.one(ctx, d, v, shape)
		if err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	return all, nil
}

func (a *Adam) one(ctx context.Context, d dist.Device, data any, shape []int) (compute.Tensor, error) {
	t, f := device.Upload(ctx, program.ExecutorOf(d), data, shape...)
	if t != nil {
		a.own = append(a.own, t)
	}
	return t, f.AwaitOrAbandon(ctx)
}

// Close frees the state. The parameters stay.
func (a *Adam) Close() (err error) {
	for _, t := range a.own {
		err = errors.Join(err, t.Close())
	}
	return err
}

// Record records a step, after the steps that compute the gradients: for each of this rank's shards, of which there is one unless Options say
// otherwise, the gradients of all parameters in their order. Their sum over all shards and ranks is what counts: a mean over rows
// is divided by the number of all rows in the loss. The number of the step, Int32 of one element, counts from 1.
//
// Errors in recording come from Compile, as those of other steps.
func (a *Adam) Record(b *batch.Batch, gradients [][]batch.Value, step batch.Value, o ...compute.AdamOptions) error {
	if want := max(1, a.options.Shards/a.group.Size()); len(gradients) != want {
		return fmt.Errorf("adam: gradients of %d shards, not of %d: %w", len(gradients), want, compute.ErrArgument)
	}
	for _, list := range gradients {
		if len(list) != len(a.parameters) {
			return fmt.Errorf("adam: gradients of %d parameters, not of %d: %w", len(list), len(a.parameters), compute.ErrArgument)
		}
	}
	if a.group.Size() == 1 && a.options.Shards == 0 { // nothing is added
		for _, k := range a.buckets {
			for j, i := range k.members {
				k.state[j].record(b, gradients[0][i], step, o)
			}
		}
		return nil
	}
	sums := make([]batch.Value, len(a.buckets)) // of which a sharded one has this rank's part
	for j, k := range a.buckets {
		sums[j] = a.sum(b, k, gradients)
	}
	for j, k := range a.buckets {
		whole := sums[j]
		if a.options.Sharded {
			whole = b.AllGather(k.state[0].record(b, sums[j], step, o), a.group)
		}
		at := 0
		for m, i := range k.members {
			shape := a.parameters[i].Shape()
			part := b.Reshape(b.Slice(whole, compute.SliceOptions{Start: []int{at}, Size: []int{a.sizes[i]}}), shape...)
			at += a.sizes[i]
			if a.options.Sharded {
				b.Scatter(b.Import(a.parameters[i]), b.Import(a.rows[shape[0]]), part)
			} else {
				k.state[m].record(b, part, step, o)
			}
		}
	}
	return nil
}

// record updates one tensor and returns it.
func (s slot) record(b *batch.Batch, gradient, step batch.Value, o []compute.AdamOptions) batch.Value {
	value, _, _ := b.AdamWithStep(b.Import(s.value), b.Import(s.mean), b.Import(s.square), gradient, step, o...)
	return value
}

// sum adds a bucket's gradients over all shards.
func (a *Adam) sum(b *batch.Batch, k *bucket, gradients [][]batch.Value) batch.Value {
	var flat []batch.Value
	for _, list := range gradients {
		size := 0
		for _, i := range k.members {
			flat = append(flat, b.Reshape(list[i], a.sizes[i]))
			size += a.sizes[i]
		}
		if size < k.size {
			flat = append(flat, b.Fill(0, k.size-size))
		}
	}
	all := flat[0]
	if len(flat) > 1 {
		all = b.Concat(0, flat...)
	}
	if a.options.Shards == 0 {
		if a.options.Sharded {
			return b.ReduceScatter(all, a.group, dist.Sum)
		}
		return b.AllReduce(all, a.group, dist.Sum)
	}
	if a.group.Size() > 1 {
		all = b.AllGather(all, a.group)
	}
	part, from := k.size, 0
	if a.options.Sharded {
		part /= a.group.Size()
		from = a.group.Rank() * part
	}
	var total batch.Value
	for s := range a.options.Shards {
		x := b.Slice(all, compute.SliceOptions{Start: []int{s*k.size + from}, Size: []int{part}})
		if s == 0 {
			total = x
		} else {
			total = b.Add(total, x)
		}
	}
	return total
}

// State reads the state of all parameters, for a checkpoint. If it is sharded, that is a collective: all ranks call it.
func (a *Adam) State(ctx context.Context) (*State, error) {
	s := &State{make([][]float32, len(a.sizes)), make([][]float32, len(a.sizes))}
	for _, k := range a.buckets {
		for which, to := range [][][]float32{s.Mean, s.Square} {
			whole := make([]float32, 0, k.size)
			for _, x := range k.state {
				t := []compute.Tensor{x.mean, x.square}[which]
				data := make([]float32, program.Len(t.Shape()))
				if err := t.ReadAsync(data).Await(ctx); err != nil {
					return nil, fmt.Errorf("adam: %w", err)
				}
				whole = append(whole, data...)
			}
			if a.options.Sharded {
				part := whole
				whole = make([]float32, k.size)
				if err := a.group.AllGather(ctx, whole, part); err != nil {
					return nil, fmt.Errorf("adam: %w", err)
				}
			}
			for _, i := range k.members {
				to[i] = whole[:a.sizes[i]:a.sizes[i]]
				whole = whole[a.sizes[i]:]
			}
		}
	}
	return s, nil
}

// Bytes returns how much memory of the device the optimiser takes, beside the parameters.
func (a *Adam) Bytes() (n int) {
	for _, t := range a.own {
		n += 4 * program.Len(t.Shape())
	}
	return n
}
