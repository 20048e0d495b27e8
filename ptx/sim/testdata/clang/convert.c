// Conversions between integers and floating point, and rounding to whole numbers.

CASE1(f32, f32_from_s32, s32) { return a; }
CASE1(f32, f32_from_u32, u32) { return a; }
CASE1(f32, f32_from_s64, s64) { return a; }
CASE1(f32, f32_from_u64, u64) { return a; }
CASE1(f64, f64_from_s32, s32) { return a; }
CASE1(f64, f64_from_s64, s64) { return a; }
CASE1(f64, f64_from_u64, u64) { return a; }
CASE1(f32, f32_from_narrow, u32) { return (f32)(u8)a + (f32)(s8)(a >> 8) * 3 + (f32)(s16)(a >> 16) + (f32)(u16)a / 7; }
CASE1(s32, s32_from_f32, f32) { return a > -2147483904.0f && a < 2147483648.0f ? (s32)a : -1; }
CASE1(u32, u32_from_f32, f32) { return a > -1 && a < 4294967296.0f ? (u32)a : 99; }
CASE1(s64, s64_from_f32, f32) { return a >= -0x1p63f && a < 0x1p63f ? (s64)a : -1; }
CASE1(u64, u64_from_f32, f32) { return a > -1 && a < 0x1p64f ? (u64)a : 99; }
CASE1(s32, s32_from_f64, f64) { return a > -2147483649.0 && a < 2147483648.0 ? (s32)a : -1; }
CASE1(u32, u32_from_f64, f64) { return a > -1 && a < 4294967296.0 ? (u32)a : 99; }
CASE1(s64, s64_from_f64, f64) { return a >= -0x1p63 && a < 0x1p63 ? (s64)a : -1; }
CASE1(u64, u64_from_f64, f64) { return a > -1 && a < 0x1p64 ? (u64)a : 99; }
CASE2(s32, narrow_from_floats, f32, f64) {
    s32 r = a > -129 && a < 128 ? (s8)a : 5;
    r = r * 70000 + (b > -32769 && b < 32768 ? (s16)b : 7);
    return r * 3 + (b > -1 && b < 256 ? (u8)b : 9);
}
CASE1(f32, f32_from_f64, f64) { return a; }
CASE1(f64, f64_from_f32, f32) { return a; }
CASE1(f32, through_half, f32) {
    __fp16 h = a;
    return h;
}
CASE2(f32, sum_of_halves, f32, f32) {
    __fp16 x = a, y = b, z = (f32)x + (f32)y;
    return z;
}
CASE1(f32, half_from_bits, u32) {
    return BITS(__fp16, (u16)a);
}
CASE1(f32, floor_f32, f32) { return __builtin_floorf(a); }
CASE1(f32, ceil_f32, f32) { return __builtin_ceilf(a); }
CASE1(f32, trunc_f32, f32) { return __builtin_truncf(a); }
CASE1(f32, rint_f32, f32) { return __builtin_rintf(a); }
CASE1(f64, floor_f64, f64) { return __builtin_floor(a); }
CASE1(f64, ceil_f64, f64) { return __builtin_ceil(a) - __builtin_trunc(a); }
CASE1(f64, rint_f64, f64) { return __builtin_nearbyint(a); }
CASE1(f32, round_f32, f32) { return __builtin_roundf(a); }
CASE1(f64, round_f64, f64) { return __builtin_round(a); }
CASE1(u32, bits_of_f32, f32) { return a == a ? BITS(u32, a) : 1; }
CASE1(f64, f64_of_bits, u64) { return BITS(f64, a ^ 1ull << 62); }
CASE2(s32, fixed_point, s32, s32) {
    f64 product = (f64)a * b / 65536;
    return product >= -2147483648.0 && product <= 2147483647.0 ? (s32)product : 0;
}
