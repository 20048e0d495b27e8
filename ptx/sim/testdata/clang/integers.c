// Integers of all widths: wrapping, signs, division, overflow.

CASE2(u32, add_u32, u32, u32) { return a + b; }
CASE2(u64, sub_u64, u64, u64) { return a - b; }
CASE3(u32, mad_u32, u32, u32, u32) { return a * b + c; }
CASE2(u64, mul_u64, u64, u64) { return a * b; }
CASE2(s64, mul_wide_s32, s32, s32) { return (s64)a * b; }
CASE2(u64, mul_wide_u32, u32, u32) { return (u64)a * b; }
CASE2(u32, mul_high_u32, u32, u32) { return (u64)a * b >> 32; }
CASE2(s64, mul_high_s64, s64, s64) { return (s128)a * b >> 64; }
CASE2(u64, mul_high_u64, u64, u64) { return (u128)a * b >> 64; }

CASE3(u64, wrap_u8, u32, u32, u32) {
    u8 x = a, y = b, z = c;
    u8 sum = x + y, product = x * y, difference = z - x;
    return sum | (u32)product << 8 | (u32)difference << 16 | (u64)(u8)~z << 24;
}

CASE2(s64, wrap_s16, s32, s32) {
    s16 x = a, y = b;
    s16 sum = x + y, product = (s32)x * y;
    s8 low = sum;
    return (s64)sum + product * 3LL + low;
}

CASE2(u32, compare_signs, s32, u32) {
    return (a < (s32)b) | ((u32)a < b) << 1 | (a <= (s32)b) << 2 | ((u32)a >= b) << 3 | ((s8)a < (s8)b) << 4 | ((u8)a > (u8)b) << 5 |
           ((s16)a == (s16)b) << 6 | ((s64)a < (s64)b) << 7;
}

CASE2(u32, compare_u64, u64, u64) { return (a < b) | (a == b) << 1 | ((s64)a < (s64)b) << 2 | ((s64)a >= (s64)b) << 3 | (a != b) << 4; }
CASE2(u32, difference_u32, u32, u32) { return a > b ? a - b : b - a; }
CASE1(u32, magnitude_s32, s32) { return a < 0 ? -(u32)a : (u32)a; }
CASE2(s32, divide_s32, s32, s32) { return b == 0 || (a == -2147483647 - 1 && b == -1) ? 17 : a / b; }
CASE2(s32, remainder_s32, s32, s32) { return b == 0 || (a == -2147483647 - 1 && b == -1) ? 17 : a % b; }
CASE2(u32, divide_u32, u32, u32) { return b ? a / b + a % b : 0; }
CASE2(s64, divide_s64, s64, s64) { return b == 0 || b == -1 ? 17 : a / b; }
CASE2(s64, remainder_s64, s64, s64) { return b == 0 || b == -1 ? 17 : a % b; }
CASE2(u64, divide_u64, u64, u64) { return b ? a / b : 1; }
CASE2(u64, remainder_u64, u64, u64) { return a % (b >> 33 | 1); }
CASE1(s32, divide_by_constants, s32) { return a / 7 + a % 10 + a / -3 + a / 16; }
CASE1(u64, divide_by_large, u64) { return a / 1000000007u + a % 641; }

CASE2(s32, divide_s16, s32, s32) {
    s16 x = a, y = b;
    return y ? x / y * 100 + x % y : -1;
}

CASE3(s32, middle_s32, s32, s32, s32) {
    s32 low = a < b ? a : b, high = a < b ? b : a;
    return c < low ? low : c > high ? high : c;
}

CASE3(u64, extremes_u64, u64, u64, u64) {
    u64 low = a < b ? a : b, high = (s64)b > (s64)c ? b : c;
    return low ^ high * 3;
}

CASE2(u64, overflow_add, u32, u32) {
    u32 r;
    bool over = __builtin_add_overflow(a, b, &r);
    return r | (u64)over << 32;
}

CASE2(u64, overflow_sub, s32, s32) {
    s32 r;
    bool over = __builtin_sub_overflow(a, b, &r);
    return (u32)r | (u64)over << 32;
}

CASE2(u64, overflow_mul, u64, u64) {
    u64 r;
    return __builtin_mul_overflow(a, b, &r) ? ~r : r;
}

CASE3(u64, carry_chain, u64, u64, u64) {
    u128 x = (u128)a << 64 | b, y = (u128)b << 64 | c, s = x + y, d = y - x;
    return (u64)(s >> 64) ^ (u64)d * 5 ^ (u64)(d >> 64) * 7 ^ (u64)s * 11;
}

CASE2(u32, average, u32, u32) { return (a & b) + ((a ^ b) >> 1); }
CASE2(s64, extend_signs, u32, u64) { return (s64)(s8)a + (s64)(s16)(a >> 8) * 256 + (s32)b + (s64)(u8)(b >> 40); }
