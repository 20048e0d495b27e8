// Loops whose lengths differ from thread to thread.

CASE2(u32, gcd, u32, u32) {
    while (b) {
        u32 r = a % b;
        a = b, b = r;
    }
    return a;
}
CASE1(u32, collatz, u32) {
    u32 steps = 0, x = (a & 0xffff) | 1;
    while (x != 1 && steps < 200) {
        x = x & 1 ? 3 * x + 1 : x / 2;
        steps++;
    }
    return steps << 24 ^ x;
}
CASE1(u64, fibonacci, u32) {
    u64 x = 0, y = 1;
    for (u32 i = a & 127; i > 0; i--) {
        u64 next = x + y;
        x = y, y = next;
    }
    return x;
}
CASE1(u32, integer_root, u64) {
    u64 r = 0;
    for (u64 bit = 1ull << 31; bit; bit >>= 1)
        if ((r | bit) * (r | bit) <= a) r |= bit;
    return r;
}
CASE1(u32, is_prime, u32) {
    u32 n = a & 0x3fff;
    if (n < 2) return 0;
    for (u32 d = 2; d * d <= n; d++)
        if (n % d == 0) return d;
    return 1;
}
CASE1(u32, digits, u64) {
    u32 sum = 0, count = 0;
    do {
        sum += a % 10;
        count++;
        a /= 10;
    } while (a);
    return sum * 100 + count;
}
CASE3(u64, power_modulo, u64, u32, u32) {
    u64 m = (u64)c + 2, x = a % m, r = 1;
    for (b &= 0xffff; b; b >>= 1) {
        if (b & 1) r = r * x % m;
        x = x * x % m;
    }
    return r;
}
CASE2(u32, nested_exits, u32, u32) {
    u32 r = 0;
    for (u32 i = 0; i < 8; i++) {
        if ((a >> i & 3) == 2) continue;
        for (u32 j = i; j < 8; j++) {
            if ((b >> j & 1) == 0) continue;
            if (r > 200) goto done;
            if ((a ^ b) >> (i + j) & 1) break;
            r += i * j + 1;
        }
    }
done:
    return r;
}
CASE2(u64, generators, u64, u32) {
    u64 x = a | 1;
    u32 y = b;
    for (u32 i = 0; i < (b & 31); i++) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        y = y * 1664525 + 1013904223;
    }
    return x + y;
}
CASE2(u32, binomial, u32, u32) {
    u32 n = a & 15, k = b & 15, row[17] = {1};
    for (u32 i = 1; i <= n; i++)
        for (u32 j = i; j > 0; j--) row[j] += row[j - 1];
    return k <= n ? row[k] : 0;
}
CASE2(u64, hash, u64, u32) {
    u64 h = 14695981039346656037ull;
    for (u32 i = 0; i < (b & 7) + 1; i++) h = (h ^ (a >> 8 * i & 0xff)) * 1099511628211ull;
    return h;
}
CASE1(f32, harmonic, u32) {
    f32 sum = 0;
    for (u32 i = a & 63; i > 0; i--) sum += 1.0f / i;
    return sum;
}
