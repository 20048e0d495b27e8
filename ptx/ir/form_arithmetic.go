package ir

const arithmeticForms = `
# integers
add.($int) d s s
add.sat.s32 d s s
add.(u16x2 s16x2) d s s | 90 8.0
add.cc.(u32 s32 u64@50/4.3 s64@50/4.3) d s s
addc{.cc}.(u32 s32 u64@50/4.3 s64@50/4.3) d s s
sub.($int) d s s
sub.sat.s32 d s s
sub.cc.(u32 s32 u64@50/4.3 s64@50/4.3) d s s
subc{.cc}.(u32 s32 u64@50/4.3 s64@50/4.3) d s s
mul.(hi lo).($int) d s s
mul.wide.(u16 u32 s16 s32) d:w s s
mad.(hi lo).($int) d s s s
mad.hi.sat.s32 d s s s
mad.wide.(u16 u32 s16 s32) d:w s s s:w
mad.(hi lo).cc.(u32 s32 u64@50/4.3 s64@50/4.3) d s s s
madc.(hi lo){.cc}.(u32 s32 u64@50/4.3 s64@50/4.3) d s s s
mul24.(hi lo).(u32 s32) d s s
mad24.(hi lo).(u32 s32) d s s s
mad24.hi.sat.s32 d s s s
sad.($int) d s s s
div.($int) d s s
rem.($int) d s s
abs.(s16 s32 s64) d s
neg.(s16 s32 s64) d s
min.($int) d s s
max.($int) d s s
min{.relu}.(s16x2 s32) d s s | 90 8.0
max{.relu}.(s16x2 s32) d s s | 90 8.0
min.u16x2 d s s | 90 8.0
max.u16x2 d s s | 90 8.0
dp4a.(u32 s32).(u32 s32) d:u32 s:u32 s:u32 s:u32 | 61 5.0
dp2a.(lo hi).(u32 s32).(u32 s32) d:u32 s:u32 s:u32 s:u32 | 61 5.0

# f32 and f64
add{.($rnd)}{.ftz}{.sat}.f32 d s s
add{.($rnd)}.f64 d s s
add{.($rnd)}{.ftz}.f32x2 d s s | 100 8.6
sub{.($rnd)}{.ftz}{.sat}.f32 d s s
sub{.($rnd)}.f64 d s s
sub{.($rnd)}{.ftz}.f32x2 d s s | 100 8.6
mul{.($rnd)}{.ftz}{.sat}.f32 d s s
mul{.($rnd)}.f64 d s s
mul{.($rnd)}{.ftz}.f32x2 d s s | 100 8.6
mad.($rnd){.ftz}{.sat}.f32 d s s s
mad.($rnd).f64 d s s s
fma.($rnd){.ftz}{.sat}.f32 d s s s
fma.($rnd).f64 d s s s
fma.($rnd){.ftz}.f32x2 d s s s | 100 8.6
div.(approx full $rnd){.ftz}.f32 d s s
div.($rnd).f64 d s s
abs{.ftz}.f32 d s
abs.f64 d s
neg{.ftz}.f32 d s
neg.f64 d s
min{.ftz}{.NaN@80/7.0}{.xorsign.abs@86/7.2}.f32 d s s
max{.ftz}{.NaN@80/7.0}{.xorsign.abs@86/7.2}.f32 d s s
min{.ftz}{.NaN}{.abs}.f32 d s s s | 100 8.8
max{.ftz}{.NaN}{.abs}.f32 d s s s | 100 8.8
min.f64 d s s
max.f64 d s s
rcp.(approx $rnd){.ftz}.f32 d s
rcp.($rnd approx.ftz).f64 d s
sqrt.(approx $rnd){.ftz}.f32 d s
sqrt.($rnd).f64 d s
rsqrt.approx{.ftz}.(f32 f64) d s
sin.approx{.ftz}.f32 d s
cos.approx{.ftz}.f32 d s
lg2.approx{.ftz}.f32 d s
ex2.approx{.ftz}.f32 d s
tanh.approx.f32 d s | 75 7.0
copysign.(f32 f64) d s s

# f16 and bf16
add{.rn}{.ftz}{.sat}.(f16 f16x2) d r r | 53 4.2
sub{.rn}{.ftz}{.sat}.(f16 f16x2) d r r | 53 4.2
mul{.rn}{.ftz}{.sat}.(f16 f16x2) d r r | 53 4.2
add{.rn}.(bf16 bf16x2) d r r | 90 7.8
sub{.rn}.(bf16 bf16x2) d r r | 90 7.8
mul{.rn}.(bf16 bf16x2) d r r | 90 7.8
fma.rn{.ftz}{.sat}.(f16 f16x2) d r r r | 53 4.2
fma.rn{.ftz}.relu.(f16 f16x2) d r r r | 80 7.0
fma.rn{.relu}.(bf16 bf16x2) d r r r | 80 7.0
fma.rn.oob{.relu}.(f16 f16x2 bf16 bf16x2) d r r r | 90 8.1
abs{.ftz}.(f16 f16x2) d r | 53 6.5
neg{.ftz}.(f16 f16x2) d r | 53 6.0
abs.(bf16 bf16x2) d r | 80 7.0
neg.(bf16 bf16x2) d r | 80 7.0
min{.ftz}{.NaN}{.xorsign.abs@86/7.2}.(f16 f16x2) d r r | 80 7.0
max{.ftz}{.NaN}{.xorsign.abs@86/7.2}.(f16 f16x2) d r r | 80 7.0
min{.NaN}{.xorsign.abs@86/7.2}.(bf16 bf16x2) d r r | 80 7.0
max{.NaN}{.xorsign.abs@86/7.2}.(bf16 bf16x2) d r r | 80 7.0
ex2.approx.(f16 f16x2) d r | 75 7.0
ex2.approx.ftz.(bf16 bf16x2) d r | 90 7.8
tanh.approx.(f16 f16x2) d r | 75 7.0
tanh.approx.(bf16 bf16x2) d r | 90 7.8`

const logicForms = `
and.(b16 b32 b64) d s s
or.(b16 b32 b64) d s s
xor.(b16 b32 b64) d s s
and.pred q p p
or.pred q p p
xor.pred q p p
not.(b16 b32 b64) d s
not.pred q p
cnot.(b16 b32 b64) d s
lop3.b32 d s s s i | 50 4.3
lop3.(and or).b32 E s s s i p | 70 8.2
shl.(b16 b32 b64) d s s:u32
shr.(b16 b32 b64 $int) d s s:u32
shf.(l r).(clamp wrap).b32 d s s s:u32
prmt.b32{.(f4e b4e rc8 ecl ecr rc16)} d s s s
popc.(b32 b64) d:u32 s
clz.(b32 b64) d:u32 s
bfind{.shiftamt}.(u32 u64 s32 s64) d:u32 s
fns.b32 d s:b32 s:b32 s:b32 | 50 6.0
brev.(b32 b64) d s
bfe.(u32 u64 s32 s64) d s s:u32 s:u32
bfi.(b32 b64) d s s s:u32 s:u32
bmsk.(clamp wrap).b32 d:u32 s:u32 s:u32 | 70 7.6
szext.(clamp wrap).(u32 s32) d s s:u32 | 70 7.6`
