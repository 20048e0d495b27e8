package ir

// Type is a fundamental type of PTX: that of a register, of a variable's elements, or of an instruction's operands.
type Type uint8

// The types. Packed ones (F16x2 and the like) live in registers of B32; the alternate formats (TF32, E4M3 …) appear in
// instructions only.
const (
	NoType Type = iota
	Pred
	B1
	B8
	B16
	B32
	B64
	B128
	U4
	U8
	U16
	U32
	U64
	S4
	S8
	S16
	S32
	S64
	F16
	F32
	F64
	BF16
	TF32
	F16x2
	BF16x2
	F32x2
	U16x2
	S16x2
	U8x4
	S8x4
	E4M3
	E5M2
	E4M3x2
	E5M2x2
	TexRef // of variables and parameters only: handles of textures, samplers and surfaces
	SamplerRef
	SurfRef
	numTypes
)

// Class says how the bits of a type are to be read.
type Class uint8

// The classes. Packed types have the class of their parts.
const (
	Bits Class = iota
	Unsigned
	Signed
	Float
	Predicate
)

var types = [numTypes]struct {
	name  string
	bits  int
	class Class
}{
	Pred: {"pred", 1, Predicate},
	B1:   {"b1", 1, Bits}, B8: {"b8", 8, Bits}, B16: {"b16", 16, Bits}, B32: {"b32", 32, Bits}, B64: {"b64", 64, Bits},
	B128: {"b128", 128, Bits},
	U4:   {"u4", 4, Unsigned}, U8: {"u8", 8, Unsigned}, U16: {"u16", 16, Unsigned}, U32: {"u32", 32, Unsigned},
	U64: {"u64", 64, Unsigned},
	S4:  {"s4", 4, Signed}, S8: {"s8", 8, Signed}, S16: {"s16", 16, Signed}, S32: {"s32", 32, Signed}, S64: {"s64", 64, Signed},
	F16: {"f16", 16, Float}, F32: {"f32", 32, Float}, F64: {"f64", 64, Float}, BF16: {"bf16", 16, Float}, TF32: {"tf32", 32, Float},
	F16x2: {"f16x2", 32, Float}, BF16x2: {"bf16x2", 32, Float}, F32x2: {"f32x2", 64, Float},
	U16x2: {"u16x2", 32, Unsigned}, S16x2: {"s16x2", 32, Signed}, U8x4: {"u8x4", 32, Unsigned}, S8x4: {"s8x4", 32, Signed},
	E4M3: {"e4m3", 8, Float}, E5M2: {"e5m2", 8, Float}, E4M3x2: {"e4m3x2", 16, Float}, E5M2x2: {"e5m2x2", 16, Float},
	TexRef: {"texref", 64, Bits}, SamplerRef: {"samplerref", 64, Bits}, SurfRef: {"surfref", 64, Bits},
}

var typeByName = func() map[string]Type {
	m := map[string]Type{}
	for t := Pred; t < numTypes; t++ {
		m[types[t].name] = t
	}
	return m
}()

// TypeNamed returns the type with a name such as "f32", without a dot.
func TypeNamed(name string) (Type, bool) {
	t, ok := typeByName[name]
	return t, ok
}

// String is the name of the type without a dot.
func (t Type) String() string {
	if t == NoType || t >= numTypes {
		return "none"
	}
	return types[t].name
}

// Mod is the type as part of an opcode.
func (t Type) Mod() Mod { return Mod(t.String()) }

// Bits is the width of the type; 1 for predicates.
func (t Type) Bits() int { return types[t].bits }

// Size is the number of bytes that an element takes in memory, 0 for what memory cannot hold.
func (t Type) Size() int { return types[t].bits / 8 }

// Class says how the bits are read.
func (t Type) Class() Class { return types[t].class }

// IsFloat tells floating-point types, packed and alternate ones among them.
func (t Type) IsFloat() bool { return types[t].class == Float }

// IsOpaque tells the types of handles of textures, samplers and surfaces.
func (t Type) IsOpaque() bool { return t == TexRef || t == SamplerRef || t == SurfRef }

// IsSigned tells signed integers.
func (t Type) IsSigned() bool { return types[t].class == Signed }
