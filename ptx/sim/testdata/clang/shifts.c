// Shifts and rotations by variable amounts.

CASE2(u32, shift_left_u32, u32, u32) { return a << (b & 31); }
CASE2(u32, shift_right_u32, u32, u32) { return a >> (b & 31); }
CASE2(s32, shift_right_s32, s32, u32) { return a >> (b & 31); }
CASE2(u64, shift_left_u64, u64, u32) { return a << (b & 63); }
CASE2(s64, shift_right_s64, s64, u32) { return a >> (b & 63); }
CASE2(u32, rotate_left, u32, u32) { return a << (b & 31) | a >> (-b & 31); }
// By constants: clang 14 rotates 64 bits by variable amounts with shifts whose amounts it does not reduce.
CASE2(u64, rotate_right, u64, u64) { return (a >> 13 | a << 51) + (b >> 40 | b << 24); }

CASE2(s32, shift_narrow, u32, u32) {
    s8 x = a;
    u16 y = a >> 5;
    s16 z = a >> 9;
    return (x >> (b & 7)) + (s32)((u16)(y << (b & 15)) >> 3) * 5 + (z >> (b >> 4 & 15)) * 77;
}

CASE3(u64, shift_u128, u64, u64, u32) {
    u128 x = (u128)a << 64 | b;
    return (u64)(x >> (c & 127)) ^ (u64)(x << (c & 127)) * 3 ^ (u64)(x << (c & 127) >> 64);
}

CASE3(u32, funnel, u32, u32, u32) { return ((u64)a << 32 | b) >> (c & 31); }
CASE3(u32, insert_field, u32, u32, u32) {
    u32 at = c & 15, mask = (1u << (c >> 4 & 15)) - 1;
    return (a & ~(mask << at)) | (b & mask) << at;
}
CASE2(s32, extract_signed, u32, u32) {
    u32 width = (b & 15) + 1, at = b >> 4 & 15;
    return (s32)(a << (32 - width - at)) >> (32 - width);
}
CASE2(u32, shift_or_zero, u32, u32) { return b > 31 ? 0 : a << b; }
