// Branches: switches of several kinds, short circuits, jumps.

CASE2(u32, switch_dense, u32, u32) {
    switch (a & 7) {
    case 0: return b;
    case 1: return b * 3;
    case 2: return b / 7;
    case 3: return b ^ 9;
    case 4: return 77;
    case 5: return b << 4;
    case 6: return ~b;
    }
    return 1;
}
CASE1(s32, switch_sparse, s32) {
    switch (a) {
    case -2147483647 - 1: return 1;
    case -1: return 2;
    case 0: return 3;
    case 1: return 4;
    case 127: return 5;
    case 65536: return 6;
    case 2147483647: return 7;
    default: return a > 0 ? 8 : 9;
    }
}
CASE2(u32, switch_through, u32, u32) {
    u32 r = 1;
    switch (a % 6) {
    case 5: r += b;
    case 4: r *= 3;
    case 3: r ^= b; break;
    case 2: r = 100;
    case 1: r -= 7; break;
    default: r = b;
    }
    return r;
}
CASE1(u64, switch_u64, u64) {
    switch (a >> 60) {
    case 0x0: case 0x3: case 0x5: return a * 2;
    case 0xf: return a / 3;
    case 0x8 ... 0xb: return a ^ 0x55;
    }
    return 0;
}
static u32 touched(u32 *count, u32 v) {
    ++*count;
    return v;
}
CASE3(u32, short_circuit, u32, u32, u32) {
    u32 n = 0;
    bool r = (touched(&n, a & 1) && touched(&n, b & 1)) || (touched(&n, c & 1) && !touched(&n, a & 2));
    return r | n << 4;
}
CASE3(s32, nested_ifs, s32, s32, s32) {
    if (a < b) {
        if (b < c) return 1;
        if (a < c) return 2;
        return a == c ? 3 : 4;
    } else if (a > b) {
        if (c > a || c < b) {
            if (c & 1) return 5;
        } else
            return 6;
        return 7;
    }
    return c ? 8 : 9;
}
CASE1(u32, state_machine, u64) {
    u32 seen = 0;
even:
    if (!a) return seen << 1;
    seen += 3;
    if (a & 1) {
        a >>= 1;
        goto odd;
    }
    a >>= 1;
    goto even;
odd:
    if (!a) return seen << 1 | 1;
    seen ^= 5;
    if (a & 1) {
        a >>= 2;
        goto even;
    }
    a >>= 1;
    goto odd;
}
CASE2(u32, duffs_device, u32, u32) {
    u32 n = (b & 15) + 1, rounds = (n + 3) / 4, r = a;
    switch (n % 4) {
    case 0:
        do {
            r = r * 5 + 1;
        case 3: r ^= r >> 3;
        case 2: r += n;
        case 1: r = r << 1 | r >> 31;
        } while (--rounds);
    }
    return r;
}
CASE3(f32, ternaries, f32, f32, f32) { return a < b ? (b < c ? c : b != b ? a : b) : a > c ? a : c == c ? c : 0; }
