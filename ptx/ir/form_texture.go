package ir

import (
	"fmt"
	"slices"
)

const textureForms = `
tex{.base}.(1d 2d 3d a1d a2d).v4.(u32 s32 f32 f16@53/4.2).(f32 s32) v T
tex{.base}.(cube acube).v4.(u32 s32 f32 f16@53/4.2).f32 v T
tex{.base}.(1d 2d 3d a1d a2d).v2.f16x2.(f32 s32) v T | 53 4.2
tex{.base}.(cube acube).v2.f16x2.f32 v T | 53 4.2
tex.level.(1d 2d 3d a1d a2d cube acube).v4.(u32 s32 f32 f16@53/4.2).f32 v T s:f32
tex.level.(1d 2d 3d a1d a2d).v4.(u32 s32 f32 f16@53/4.2).s32 v T s:s32
tex.grad.(1d a1d).v4.(u32 s32 f32 f16@53/4.2).f32 v T 1s:f32 1s:f32
tex.grad.(2d a2d).v4.(u32 s32 f32 f16@53/4.2).f32 v T 2s:f32 2s:f32
tex.grad.(3d cube@50/4.3 acube@50/4.3).v4.(u32 s32 f32 f16@53/4.2).f32 v T 4s:f32 4s:f32
tld4.(r g b a).(2d a2d@50/4.3 cube@50/4.3 acube@50/4.3).v4.(u32 s32 f32).f32 v T
txq.(width height depth channel_data_type channel_order normalized_coords array_size@50/4.1 num_mipmap_levels@50/4.1 num_samples@50/4.1).b32 d a
txq.(filter_mode addr_mode_0 addr_mode_1 addr_mode_2 force_unnormalized_coords).b32 d a
txq.level.(width height depth).b32 d a s | 50 4.3
suld.b.(1d 2d 3d a1d a2d){.(ca cg cs cv)}{.v2}.(b8 b16 b32 b64).(trap clamp zero) v:~0 U
suld.b.(1d 2d 3d a1d a2d){.(ca cg cs cv)}.v4.(b8 b16 b32).(trap clamp zero) v:~0 U
sust.b.(1d 2d 3d a1d a2d){.(wb cg cs wt)}{.v2}.(b8 b16 b32 b64).(trap clamp zero) U V:~0
sust.b.(1d 2d 3d a1d a2d){.(wb cg cs wt)}.v4.(b8 b16 b32).(trap clamp zero) U V:~0
sust.p.(1d 2d 3d){.(v2 v4)}.b32.(trap clamp zero) U V
sured.b.add.(1d 2d 3d).(u32 s32 u64).(trap clamp zero) U s
sured.b.(min max).(1d 2d 3d).(u32 s32).(trap clamp zero) U s
sured.b.(min max).(1d 2d 3d).(u64 s64).(trap clamp zero) U s | 50 8.1
sured.b.(and or).(1d 2d 3d).b32.(trap clamp zero) U s
sured.p.(add min max and or).(1d 2d 3d).b32.(trap clamp zero) U s
suq.(width height depth channel_data_type channel_order array_size@50/4.1 memory_layout@50/4.2).b32 d a
istypep.(texref samplerref surfref) q r:u64`

// Geometry is the part of the opcode that says what shape a texture or surface has, "" if there is none.
func (in *Instr) Geometry() Mod {
	return in.First("1d", "2d", "3d", "a1d", "a2d", "cube", "acube")
}

// coordinates is how many a texture or surface of the geometry takes: vectors of three are filled up to four.
var coordinates = map[Mod]int{"1d": 1, "2d": 2, "3d": 4, "a1d": 2, "a2d": 4, "cube": 4, "acube": 4}

// textured checks [texture, coordinates] and [texture, sampler, coordinates].
func (a *argument) textured(in *Instr, o *Operand, fn *Func) string {
	if o.Kind != AddrOperand || len(o.Elems) == 0 || o.Off != 0 {
		return "has to be a texture or surface with its coordinates: [t, {x, y}]"
	}
	if fn != nil && o.Reg != 0 && (fn.Regs[o.Reg].Type.Bits() != 64 || fn.Regs[o.Reg].Type.IsFloat()) {
		return fmt.Sprintf("has %s of type .%s as texture or surface, which takes .b64", fn.Regs[o.Reg].Name, fn.Regs[o.Reg].Type)
	}
	elems := o.Elems
	if a.kind == 'T' && len(elems) == 2 {
		if s := &elems[0]; s.Kind != SymOperand {
			if msg := (&argument{kind: 'r'}).scalar(s, U64, fn); msg != "" {
				return msg
			}
		}
		elems = elems[1:]
	}
	if len(elems) != 1 {
		return "has more than a texture, a sampler and coordinates"
	}
	geometry := in.Geometry()
	list, n := elems, coordinates[geometry]
	if elems[0].Kind == VecOperand {
		list = elems[0].Elems
	}
	if len(list) != n && !(geometry == "2d" && len(list) == 4) {
		return fmt.Sprintf("has to have %d coordinates", n)
	}
	t := S32
	if a.kind == 'T' {
		t = in.Type(1)
	}
	for i := range list {
		of := t
		if i == 0 && slices.Contains([]Mod{"a1d", "a2d", "acube"}, geometry) {
			of = U32
		}
		if msg := (&argument{kind: 's', loose: true}).scalar(&list[i], of, fn); msg != "" {
			return msg
		}
	}
	return ""
}
