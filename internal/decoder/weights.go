package decoder

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/quant"
)

// Device is what a model runs on: those of this module.
type Device interface {
	batch.Device
	UploadAsync(data any, shape ...int) (compute.Tensor, *compute.Future)
}

// Weights is a model on a device. It is safe for concurrent use; Close frees the memory.
type Weights struct {
	*Model
	on      *network[weight]
	group   batch.Group // whose members have a part of the weights each; nil for all
	sum     func(b *batch.Batch, x batch.Value) batch.Value
	device  Device
	uploads []compute.Tensor
}

// weight is a tensor of the model as a device has it.
type weight struct {
	name   string
	tensor compute.Tensor      // nil where the model has none
	format compute.BlockFormat // of packed blocks, else 0

	before, after int // columns beside those of the activations that it is multiplied with

	changes []lowRank[weight] // what adapters add
}

func (w weight) missing() bool { return w.tensor == nil }

// packed reports blocks as quant.Pack arranges them.
func (w weight) packed() bool { return w.format != 0 }

// LoadOptions parametrise [Model.Load].
type LoadOptions struct {
	// Dense makes Float32 of all quantised weights, which takes several times the memory. Otherwise they stay in their blocks.
	Dense bool
	// Adapters are added to the weights.
	Adapters []ScaledAdapter
	// Progress, if not nil, is called after each tensor with the bytes of the file that were read and all that will be.
	Progress func(done, total int64)
	// Group, if not nil, is the members who have a part of the weights each. All of them make the same sessions and continue them with the
	// same tokens, in the same order. AllReduce is batch.Batch's, which programs without groups need not link.
	Group     batch.Group
	AllReduce func(b *batch.Batch, x batch.Value, g batch.Group, r compute.Reduction) batch.Value
}

// Load brings the weights to a device: matrices in their blocks or halves, all others, vectors, and halves of experts and of embeddings as Float32. When ctx is done,
// it stops after the tensor under way.
func (m *Model) Load(ctx context.Context, device Device, o LoadOptions) (*Weights, error) {
	for _, a := range o.Adapters {
		if err := a.check(m); err != nil {
			return nil, fmt.Errorf("decoder: %w", err)
		}
	}
	m, group, err := m.of(o.Group)
	if err != nil {
		return nil, fmt.Errorf("decoder: %w", err)
	}
	w := &Weights{Model: m, device: device, group: group}
	w.sum = func(b *batch.Batch, x batch.Value) batch.Value { return o.AllReduce(b, x, group, compute.ReduceSum) }
	u := &upload{LoadOptions: o, ctx: ctx, weights: w}
	m.each(func(t *tensor) { u.total += t.size() })
	w.on = convert(m.tensors, u.tensor)
	if err := u.wait(); err != nil {
		w.Close()
		return nil, fmt.Errorf("decoder: %w", err)
	}
	return w, nil
}

// Spread reports weights of which others have parts.
func (w *Weights) Spread() bool { return w.group != nil }

// Bytes is the memory that the weights take on the device.
func (w *Weights) Bytes() (n int64) {
	for _, t := range w.uploads {
		n += bytesOf(t)
	}
	return n
}

func bytesOf(t compute.Tensor) int64 {
	return int64(program.Type{DType: t.DType(), Shape: t.Shape()}.Bytes())
}

// Close frees the memory on the device once the work that uses it is done. It is idempotent.
func (w *Weights) Close() error {
	var all []error
	for _, t := range w.uploads {
		all = append(all, t.Close())
	}
	return errors.Join(all...)
}

// upload converts tensors and sends them to the device, one while the next is converted. It keeps the first error.
type upload struct {
	LoadOptions
	ctx         context.Context
	weights     *Weights
	done, total int64
	under       *compute.Future // the one under way
	stages      [2]stage        // of it and of the next
	err         error
}

// stage is memory in which tensors are converted, one after the other.
type stage struct {
	packed quant.Packed
	floats []float32
	halves []compute.F16
	brain  []compute.BF16
}

func (u *upload) wait() error {
	if u.under != nil {
		if err := u.under.Await(u.ctx); u.err == nil {
			u.err = err
		}
		u.under = nil
	}
	return u.err
}

func (u *upload) tensor(t *tensor) weight {
	if u.err == nil {
		u.err = u.ctx.Err()
	}
	if u.err != nil {
		return weight{}
	}
	form, shape, format := u.form(t)
	data, err := u.stages[0].elements(t, form)
	if err != nil {
		u.err = fmt.Errorf("tensor %s: %w", t.name, err)
		return weight{}
	}
	w := u.send(t.name, data, shape...)
	w.format, w.before, w.after = format, t.before, t.after
	u.stages[0], u.stages[1] = u.stages[1], u.stages[0]
	if w.changes = u.changes(t); u.err != nil {
		return weight{}
	}
	if u.done += t.size(); u.Progress != nil {
		u.Progress(u.done, u.total)
	}
	return w
}

// send begins to send data, which must stay as they are until the next but one.
func (u *upload) send(name string, data any, shape ...int) weight {
	if u.wait() != nil {
		return weight{}
	}
	on, f := u.weights.device.UploadAsync(data, shape...)
	if on != nil {
		u.weights.uploads = append(u.weights.uploads, on)
	}
	u.under = f
	return weight{name: name, tensor: on}
}

// form is what a tensor becomes on the device: its type and shape, and the format of blocks that are packed.
func (o *LoadOptions) form(t *tensor) (compute.DType, []int, compute.BlockFormat) {
	shape := t.shape()
	if len(shape) < 2 {
		return compute.Float32, shape, 0
	}
	if words, err := quant.PackedWords(t.format(), t.cols()); err == nil && !o.Dense {
		shape[len(shape)-1] = words
		return compute.Uint32, shape, compute.BlockFormat(t.format())
	}
	switch {
	case len(shape) > 2 || t.table: // matrices of experts, and tables, whose operations take these forms alone
	case t.format() == quant.F16:
		return compute.Float16, shape, 0
	case t.format() == quant.BF16:
		return compute.BFloat16, shape, 0
	}
	return compute.Float32, shape, 0
}

// elements are what the device has of a tensor, until the stage is used again.
func (s *stage) elements(t *tensor, form compute.DType) (any, error) {
	switch form {
	case compute.Uint32:
		m, err := t.matrix()
		if err == nil {
			err = quant.PackInto(&s.packed, m)
		}
		return s.packed.Words, err
	case compute.Float32:
		s.floats = resized(s.floats, t.elements())
		return s.floats, t.dequantize(s.floats)
	}
	raw, err := t.bytes()
	if err != nil {
		return nil, err
	}
	if form == compute.BFloat16 {
		s.brain = halves(s.brain, raw)
		return s.brain, nil
	}
	s.halves = halves(s.halves, raw)
	return s.halves, nil
}

func resized[T any](s []T, n int) []T { return slices.Grow(s[:0], n)[:n] }

func halves[T ~uint16](bits []T, raw []byte) []T {
	bits = resized(bits, len(raw)/2)
	for i := range bits {
		bits[i] = T(binary.LittleEndian.Uint16(raw[2*i:]))
	}
	return bits
}

// each calls f once for every tensor of the model.
func (m *Model) each(f func(t *tensor)) {
	convert(m.tensors, func(t *tensor) weight {
		f(t)
		return weight{}
	})
}

// convert gives each tensor of a network its counterpart, in the order in which they are used. A tied head is the embedding.
func convert(n *network[*tensor], f func(t *tensor) weight) *network[weight] {
	to := func(t *tensor) weight {
		if t == nil {
			return weight{}
		}
		return f(t)
	}
	out := &network[weight]{Embedding: to(n.Embedding), Factors: to(n.Factors), Long: to(n.Long), Turn: to(n.Turn),
		Encoder: convertEncoder(n.Encoder, to)}
	for i := range n.Blocks {
		b := &n.Blocks[i]
		out.Blocks = append(out.Blocks, block[weight]{AttentionNorm: to(b.AttentionNorm), Q: to(b.Q), K: to(b.K), V: to(b.V),
			QBias: to(b.QBias), KBias: to(b.KBias), VBias: to(b.VBias), QNorm: to(b.QNorm), KNorm: to(b.KNorm),
			Output: to(b.Output), PostAttention: to(b.PostAttention), FeedForwardNorm: to(b.FeedForwardNorm), Gate: to(b.Gate),
			Up: to(b.Up), Down: to(b.Down), Experts: convertExperts(b.Experts, to), PostFeedForward: to(b.PostFeedForward),
			Biases: convertBiases(b.Biases, to)})
	}
	out.Norm, out.Head = to(n.Norm), out.Embedding
	if n.Head != n.Embedding {
		out.Head = to(n.Head)
	}
	return out
}
