// Floating-point arithmetic with all its special values, without contraction.

CASE2(f32, add_f32, f32, f32) { return a + b; }
CASE2(f32, mul_f32, f32, f32) { return a * b; }
CASE2(f32, div_f32, f32, f32) { return a / b; }
CASE1(f32, sqrt_f32, f32) { return __builtin_sqrtf(a); }
CASE3(f32, fma_f32, f32, f32, f32) { return __builtin_fmaf(a, b, c); }
CASE3(f32, mul_add_f32, f32, f32, f32) { return a * b + c; }
CASE2(f64, sub_f64, f64, f64) { return a - b; }
CASE2(f64, mul_f64, f64, f64) { return a * b; }
CASE2(f64, div_f64, f64, f64) { return a / b; }
CASE1(f64, sqrt_f64, f64) { return __builtin_sqrt(a); }
CASE3(f64, fma_f64, f64, f64, f64) { return __builtin_fma(a, b, c); }

CASE2(u32, compare_f32, f32, f32) {
    return (a < b) | (a <= b) << 1 | (a > b) << 2 | (a >= b) << 3 | (a == b) << 4 | (a != b) << 5 | !(a < b) << 6 | !(a <= b) << 7 |
           !(a > b) << 8 | !(a >= b) << 9 | __builtin_isunordered(a, b) << 10 | __builtin_islessgreater(a, b) << 11;
}
CASE2(u32, compare_f64, f64, f64) {
    return (a < b) | (a <= b) << 1 | (a > b) << 2 | (a >= b) << 3 | (a == b) << 4 | (a != b) << 5 | !(a < b) << 6 | !(a <= b) << 7 |
           !(a > b) << 8 | !(a >= b) << 9 | __builtin_isunordered(a, b) << 10 | !__builtin_isunordered(a, b) << 11;
}
CASE2(f32, least_f32, f32, f32) { return a < b ? a : b; }
CASE2(f64, greatest_f64, f64, f64) { return a >= b ? a : b; }
CASE2(f32, fmin_fmax_f32, f32, f32) {
    f32 low = __builtin_fminf(a, b), high = __builtin_fmaxf(a, b);
    return (low == 0 ? 0.0f : low) - (high == 0 ? 0.0f : high); // which zero is left open
}
CASE2(f64, fmin_f64, f64, f64) {
    f64 low = __builtin_fmin(a, b);
    return low == 0 ? 0.0 : low;
}
CASE2(f32, signs_f32, f32, f32) { return __builtin_copysignf(a, b) + -__builtin_fabsf(b); }
CASE2(f64, signs_f64, f64, f64) { return __builtin_copysign(b, -a) * __builtin_fabs(a); }
CASE1(u32, classify_f32, f32) {
    return __builtin_isnan(a) | __builtin_isinf(a) << 1 | (__builtin_isfinite(a) ? 4 : 0) | (a == 0) << 3 |
           (__builtin_fabsf(a) < 0x1p-126f) << 4;
}
CASE2(f32, subnormal_f32, f32, f32) { return a * 0x1p-130f + b * 0x1p-140f; }
CASE2(f64, subnormal_f64, f64, f64) { return a * 0x1p-1030 / (b * 0x1p30); }
CASE1(f32, polynomial, f32) { return ((((a * 0.0083f - 0.16667f) * a + 0.5f) * a - 1.25f) * a + 3.0f) * a - 7.5f; }
CASE2(f64, mixed_widths, f32, f64) { return a * b + (f32)b * a - (f64)(a * (f32)b); }
CASE3(f32, lerp, f32, f32, f32) { return a + (b - a) * c; }
CASE2(f32, compensated, f32, f32) {
    f32 sum = 0, lost = 0;
    for (int i = 1; i <= 20; i++) {
        f32 x = (i & 1 ? a : -b) / i - lost, next = sum + x;
        lost = next - sum - x;
        sum = next;
    }
    return sum;
}
CASE1(f64, newton_root, f64) {
    f64 x = a < 0 ? -a : a, r = x > 1 ? x : 1;
    for (int i = 0; i < 30 && r * r > x; i++) r = (r + x / r) * 0.5;
    return r;
}
CASE2(f64, norm, f64, f64) { return __builtin_sqrt(a * a + b * b); }
CASE2(f32, next_towards, f32, f32) {
    u32 bits = BITS(u32, a);
    if (a != a || b != b || a == b) return b;
    if (a == 0) return __builtin_copysignf(BITS(f32, 1u), b);
    return BITS(f32, (a < b) == (a > 0) ? bits + 1 : bits - 1);
}
CASE3(f64, discriminant, f64, f64, f64) {
    f64 d = b * b - 4 * a * c;
    return d < 0 ? -1 : a == 0 ? -c / b : (-b + __builtin_sqrt(d)) / (2 * a);
}
