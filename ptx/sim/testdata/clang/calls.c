// Calls: recursion, structures and narrow integers as arguments and results, functions by address.

static NOINLINE u32 fib(u32 n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
CASE1(u32, call_fibonacci, u32) { return fib(a & 7); }

static NOINLINE u32 ackermann(u32 m, u32 n) { return m == 0 ? n + 1 : n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1)); }
CASE1(u32, call_ackermann, u32) { return ackermann(a & 1, a >> 1 & 3); }

static NOINLINE bool is_odd(u32 n);
static NOINLINE bool is_even(u32 n) { return n == 0 || is_odd(n - 1); }
static NOINLINE bool is_odd(u32 n) { return n != 0 && is_even(n - 1); }
CASE1(u32, call_mutual, u32) { return is_even(a & 15) | is_odd(a >> 4 & 15) << 1; }

static NOINLINE s64 narrow(s8 a, u8 b, s16 c, u16 d, bool e, s32 f) { return a * 3LL + b * 5 + c * 7LL + d * 11LL + e + f; }
CASE2(s64, call_narrow, u32, u32) { return narrow(a, a >> 8, a >> 16, b, b >> 16 & 1, b); }

static NOINLINE s8 narrow_result(s32 a) { return (u32)a + 100; }
static NOINLINE u16 wide_result(u32 a) { return a * 3; }
CASE1(s32, call_narrow_result, s32) { return narrow_result(a) * 1000 + wide_result(a); }

static NOINLINE f64 many(u32 a, f32 b, u64 c, f64 d, s16 e, u32 f, f32 g, u64 h, s32 i, u8 j) {
    return a + b + (f64)c * 2 + d * 3 + e * 4 + (f64)f * 5 + g * 6 + (f64)(h >> 3) + i + j;
}
CASE3(f64, call_many, u32, f32, f64) { return many(a, b, (u64)a << 20, c, a >> 3, a ^ 5, b * 2, (u64)a * a, (s32)a / 2, a); }

struct pair {
    u32 x;
    u64 y;
};
static NOINLINE struct pair exchange(struct pair p, u8 by) {
    struct pair r = {(u32)p.y + by, (u64)p.x << 16 | by};
    p.x = 0;
    return r;
}
CASE2(u64, call_structures, u32, u64) {
    struct pair p = {a, b}, q = exchange(p, a >> 5);
    q = exchange(q, p.x);
    return q.x * 3 + q.y + p.x;
}

struct big {
    s32 v[5];
};
static NOINLINE s32 fold(struct big g, s32 from) {
    for (int i = 0; i < 5; i++) from = (s32)((u32)from * 31 + (u32)g.v[i]);
    return from;
}
CASE2(s32, call_by_value, s32, s32) {
    struct big g = {{a, b, a ^ b, a & b, a | b}};
    s32 r = fold(g, 7);
    return r ^ g.v[2];
}

static NOINLINE void divide(u32 a, u32 b, u32 *quotient, u32 *rest) { *quotient = a / b, *rest = a % b; }
CASE2(u64, call_pointers, u32, u32) {
    u32 q, r[3] = {1, 2, 3};
    divide(a, b | 1, &q, &r[b % 3]);
    return (u64)q << 32 | (r[0] ^ r[1] ^ r[2]);
}

static NOINLINE u32 permutations(u8 *v, u32 n, u32 limit) {
    if (n <= 1) return v[0] < v[limit];
    u32 r = 0;
    for (u32 i = 0; i < n; i++) {
        r = r * 2 + permutations(v, n - 1, limit);
        u32 j = n & 1 ? 0 : i;
        u8 t = v[j];
        v[j] = v[n - 1], v[n - 1] = t;
    }
    return r;
}
CASE1(u32, call_recursive_array, u32) {
    u8 v[4] = {a, a >> 8, a >> 16, a >> 24};
    return permutations(v, 3, 3) ^ v[1];
}

static NOINLINE u32 plus(u32 a, u32 b) { return a + b; }
static NOINLINE u32 minus(u32 a, u32 b) { return a - b; }
static NOINLINE u32 times(u32 a, u32 b) { return a * b; }
CASE3(u32, call_by_address, u32, u32, u32) {
    u32 (*f)(u32, u32) = a % 3 == 0 ? plus : a % 3 == 1 ? minus : times;
    return f(b, c);
}
static NOINLINE u32 apply(u32 (*f)(u32, u32), u32 n, u32 x) {
    u32 r = 1;
    for (u32 i = 0; i < n; i++) r = f(r, x + i);
    return r;
}
CASE2(u32, call_back, u32, u32) { return apply(a & 1 ? plus : times, b & 7, a); }
