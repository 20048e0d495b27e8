package tensormap

import (
	"encoding/binary"
	"hash/crc32"
)

// ptxTypes are the data types in the order of PTX's tensormap.replace, which is not the driver's.
var ptxTypes = [...]DataType{U8, U16, U32, S32, U64, S64, F16, F32, F32FTZ, F64, BF16, TF32, TF32FTZ}

// Replace changes a field of an encoded map as tensormap.replace does: "global_address", "rank" (one less than the rank),
// "box_dim", "global_dim", "element_stride" and "global_stride" (in bytes) of dimension i, "elemtype", "interleave_layout",
// "swizzle_mode" and "fill_mode" by PTX's numbers. The bytes may have been no map: kernels make maps of zeros, field by field.
// Whether they are one is for [Decode] to say.
func Replace(b *[Size]byte, field string, i int, v uint64) error {
	le := binary.LittleEndian
	if i < 0 || i >= MaxRank || field == "global_stride" && i >= MaxRank-1 {
		return argument("%s of dimension %d", field, i)
	}
	fits := func(n uint64) error {
		if v > n {
			return argument("%s is %d, want %d at most", field, v, n)
		}
		return nil
	}
	var err error
	switch field {
	case "global_address":
		le.PutUint64(b[16:], v)
	case "rank":
		if err = fits(MaxRank - 1); err == nil {
			b[5] = byte(v) + 1
		}
	case "box_dim":
		if err = fits(256); err == nil {
			le.PutUint16(b[76+2*i:], uint16(v))
		}
	case "global_dim":
		le.PutUint32(b[24+4*i:], uint32(v)-1)
	case "element_stride":
		if err = fits(8); err == nil {
			b[86+i] = byte(v)
		}
	case "global_stride":
		le.PutUint64(b[44+8*i:], v)
	case "elemtype":
		if err = fits(uint64(len(ptxTypes) - 1)); err == nil {
			b[4] = byte(ptxTypes[v])
		}
	case "interleave_layout":
		if err = fits(uint64(Interleave32)); err == nil {
			b[6] = byte(v)
		}
	case "swizzle_mode":
		if err = fits(uint64(numSwizzles - 1)); err == nil {
			b[7] = byte(v)
		}
	case "fill_mode":
		if err = fits(uint64(FillNaN)); err == nil {
			b[9] = byte(v)
		}
	default:
		err = argument("there is no field %q", field)
	}
	copy(b[:], magic)
	le.PutUint32(b[Size-4:], crc32.ChecksumIEEE(b[:Size-4]))
	return err
}
