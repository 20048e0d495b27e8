// Counting, searching and rearranging bits.

CASE1(u32, count_u32, u32) { return __builtin_popcount(a); }
CASE1(u32, count_u64, u64) { return __builtin_popcountll(a); }
CASE1(u32, leading_u32, u32) { return __builtin_clz(a | 1); }
CASE1(u32, leading_u64, u64) { return a ? __builtin_clzll(a) : 64; }
CASE1(u32, trailing_u32, u32) { return a ? __builtin_ctz(a) : 32; }
CASE1(u32, trailing_u64, u64) { return __builtin_ctzll(a | 1ull << 63); }
CASE1(s32, first_set, s32) { return __builtin_ffs(a); }
CASE1(u32, odd_ones, u64) { return __builtin_parityll(a); }
CASE1(u32, swap_u32, u32) { return __builtin_bswap32(a); }
CASE1(u64, swap_u64, u64) { return __builtin_bswap64(a) ^ __builtin_bswap16(a); }
CASE1(u32, reverse_u32, u32) { return __builtin_bitreverse32(a); }
CASE1(u64, reverse_u64, u64) { return __builtin_bitreverse64(a) + __builtin_bitreverse8(a); }
CASE3(u32, majority, u32, u32, u32) { return (a & b) | (b & c) | (a & c); }
CASE3(u32, choose, u32, u32, u32) { return ((a & b) ^ (~a & c)) + (a ^ b ^ ~c); }
CASE1(u32, lowest_bits, u32) { return (a & -a) ^ (a & (a - 1)) ^ (a | (a + 1)) * 3; }
CASE1(u32, next_power, u32) {
    a--;
    a |= a >> 1, a |= a >> 2, a |= a >> 4, a |= a >> 8, a |= a >> 16;
    return a + 1;
}

CASE2(u32, interleave, u32, u32) {
    u32 r = 0;
    for (u32 i = 0; i < 16; i++) r |= (a >> i & 1) << 2 * i | (b >> i & 1) << (2 * i + 1);
    return r;
}

CASE2(u32, pick_bytes, u32, u32) {
    u32 r = 0;
    for (int i = 0; i < 4; i++) r |= (a >> 8 * (b >> 4 * i & 3) & 0xff) << 8 * i;
    return r;
}

CASE2(u32, crc, u32, u32) {
    u32 r = ~b;
    for (int i = 0; i < 32; i++) {
        u32 bit = (r ^ a >> i) & 1;
        r = r >> 1 ^ (bit ? 0xedb88320 : 0);
    }
    return ~r;
}

CASE2(u64, bit_fields, u32, u32) {
    struct {
        u32 low : 5;
        s32 middle : 11;
        u32 flag : 1;
        s64 high : 37;
    } f = {0}; // else the bits beside a field would be read before they are written
    f.low = a, f.middle = b, f.flag = a >> 7, f.high = (s64)((u64)a << 17 ^ b);
    f.middle += f.low;
    return (u64)(f.middle * 1000003LL + f.low) + (u64)f.high * 3 + f.flag;
}
