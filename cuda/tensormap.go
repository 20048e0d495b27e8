package cuda

import (
	"fmt"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/ptx/args"
	"github.com/wavelane/wavelane/ptx/tensormap"
)

// TensorMap encodes a tensor map, for a kernel that copies tiles between a tensor in this buffer and shared memory
// (cp.async.bulk.tensor, TMA): the argument for a parameter that ptx.TensorMapParam declares, or of CUDA's type CUtensorMap.
//
// The tensor begins with the buffer's first element; m.Address stays 0, and a tensor that begins further on is that of a
// [Buffer.Slice]. Dims, Box and ElementStrides count elements of m.Type, which need not be the buffer's own (halves lie in
// buffers of uint16 or of bytes), Strides are in bytes; dimension 0 is the innermost. See [tensormap.Map] for the values that fields may have,
// and for the maps of images (im2col).
//
// As with [Buffer.Arg] the argument does not keep the buffer, which has to stay open until the work that uses it has been
// submitted. It may be used for any number of launches. The call starts nothing on the GPU and is safe for concurrent use.
//
// Errors wrap compute.ErrArgument for a map that the rules of tensor maps forbid, with the field, and for a buffer whose address
// they do not allow; compute.ErrShape for a tensor that is larger than the buffer; compute.ErrUnsupported where the GPU has no
// TMA (compute capability below 9.0), or the driver is older than CUDA 12; compute.ErrClosed or compute.ErrDeviceLost.
func (b *Buffer[T]) TensorMap(m tensormap.Map) (Arg, error) {
	block, err := b.acquire(nil)
	if err != nil {
		return Arg{}, fmt.Errorf("tensor map: %w", err)
	}
	defer block.release()
	switch info := b.dev.Info(); {
	case info.Capability[0] < 9:
		return Arg{}, fmt.Errorf("tensor map: %s has compute capability %d.%d, and only GPUs from 9.0 on have TMA: %w", info.Name,
			info.Capability[0], info.Capability[1], compute.ErrUnsupported)
	case m.Address != 0:
		return Arg{}, fmt.Errorf("tensor map: address %#x, want 0: the buffer says where the tensor lies: %w", m.Address,
			compute.ErrArgument)
	case b.n == 0:
		return Arg{}, fmt.Errorf("tensor map: of an empty buffer: %w", compute.ErrShape)
	}
	m.Address = uint64(b.at)
	if err := m.Validate(); err != nil {
		return Arg{}, err
	}
	if !extends(&m, b.Bytes()) {
		return Arg{}, fmt.Errorf("tensor map: %v of %v with strides of %v bytes, more than the buffer's %d bytes: %w",
			m.Dims[:m.Rank], m.Type, m.Strides[:m.Rank-1], b.Bytes(), compute.ErrShape)
	}
	d := b.dev
	if err := d.life.Begin(); err != nil {
		return Arg{}, fmt.Errorf("tensor map: %w", err)
	}
	defer d.life.End()
	if err := d.enter(); err != nil {
		return Arg{}, err
	}
	defer d.leave()
	encoded := make([]byte, tensormap.Size)
	if err := d.check(encoder(&m), d.drv.TensorMapEncode(encoded, &m)); err != nil {
		return Arg{}, fmt.Errorf("tensor map: %w", err)
	}
	return args.Bytes(encoded), nil
}

// encoder is the function of the driver that encodes a map.
func encoder(m *tensormap.Map) string {
	if m.Pixels > 0 {
		return "cuTensorMapEncodeIm2col"
	}
	return "cuTensorMapEncodeTiled"
}

// extends reports whether a valid map's tensor fits a number of bytes. Sums of products that fit have no overflow: there are
// at most five, each at most 2⁶⁰.
func extends(m *tensormap.Map, bytes uint64) bool {
	bytes = min(bytes, 1<<60)
	end := uint64(m.Type.Bytes())
	for i := range m.Rank {
		step := uint64(m.Type.Bytes())
		if i > 0 {
			step = m.Strides[i-1]
		}
		if m.Dims[i]-1 > bytes/step {
			return false
		}
		end += (m.Dims[i] - 1) * step
	}
	return end <= bytes
}
