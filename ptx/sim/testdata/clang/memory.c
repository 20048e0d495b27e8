// Arrays, structures, unions and pointers, in local memory and constant tables.

CASE2(u32, array_index, u32, u32) {
    u32 v[8];
    for (u32 i = 0; i < 8; i++) v[i] = a * (i + 1);
    v[b & 7] ^= v[a & 7];
    v[(b >> 3) & 7] += 5;
    return v[(a >> 3) & 7] + v[b >> 6 & 7];
}
CASE2(u64, array_bytes, u64, u32) {
    u8 v[16];
    for (u32 i = 0; i < 16; i++) v[i] = a >> (i & 7) * 8;
    for (u32 i = 0; i < 16; i++) v[i] += v[(b + i) & 15];
    u64 r = 0;
    for (u32 i = 0; i < 16; i++) r = r * 31 + v[i];
    return r;
}
CASE2(s64, array_s16, s64, u32) {
    s16 v[4] = {a, a >> 16, a >> 32, a >> 48};
    v[b & 3] = -v[b >> 2 & 3];
    return v[0] + v[1] * 3LL + v[2] * 5LL + v[3] * 7LL;
}
CASE2(f64, array_2d, u32, u32) {
    f64 m[3][3], sum = 0;
    for (u32 i = 0; i < 3; i++)
        for (u32 j = 0; j < 3; j++) m[i][j] = (f64)(a >> (i * 3 + j) & 15) - (f64)(b >> (i + j * 3) & 7);
    for (u32 i = 0; i < 3; i++)
        for (u32 j = 0; j < 3; j++)
            for (u32 k = 0; k < 3; k++) sum += m[i][k] * m[k][j] / (i + j + 1);
    return sum;
}
CASE2(u64, sort, u64, u32) {
    u8 v[8];
    __builtin_memcpy(v, &a, 8);
    for (u32 i = 0; i < 7; i++)
        for (u32 j = 0; j < 7 - i; j++)
            if ((v[j] > v[j + 1]) ^ (b & 1)) {
                u8 t = v[j];
                v[j] = v[j + 1], v[j + 1] = t;
            }
    __builtin_memcpy(&a, v, 8);
    return a;
}
struct particle {
    f32 x;
    s16 charge;
    u8 kind;
    f64 mass;
};
CASE3(f64, structures, f32, u32, f64) {
    struct particle p = {a, b, b >> 16, c}, q[3] = {p, p, p};
    q[b % 3].x += 1;
    q[(b >> 2) % 3].charge -= 9;
    struct particle *r = &q[(b >> 4) % 3];
    r->mass *= 2;
    p = *r;
    return p.x + p.charge * 2 + p.kind * p.mass + q[0].x - q[2].charge;
}
struct tree {
    struct {
        u16 left, right;
    } at[4];
    u64 sum;
};
CASE2(u64, nested_structures, u32, u32) {
    struct tree t = {{{a, b}, {a >> 16, b >> 16}}, a};
    t.at[2] = t.at[b & 1];
    t.at[3].left = t.at[2].right * 3;
    t.sum += t.at[a & 3].left;
    struct tree u = t;
    u.at[0].right ^= 0xff;
    return u.sum * 7 + t.at[0].right + u.at[0].right * 65536ull + u.at[3].left + u.at[3].right;
}
CASE1(u64, unions, f64) {
    union {
        f64 whole;
        u32 half[2];
        u8 byte[8];
    } u = {a == a ? a : 1};
    u.byte[3] ^= 0x55;
    u.half[1] += u.byte[6];
    return (u64)u.half[1] << 32 | u.half[0];
}
CASE2(u32, unaligned, u64, u64) {
    u8 buffer[24] = {0};
    u32 x, at = b & 7;
    __builtin_memcpy(buffer + at, &a, 8);
    __builtin_memcpy(buffer + at + 7, &b, 8);
    __builtin_memcpy(&x, buffer + (b >> 3 & 15), 4);
    return x;
}
CASE2(u64, fill_and_copy, u64, u32) {
    u64 v[6], w[6];
    __builtin_memset(v, b, sizeof v);
    v[b % 6] = a;
    __builtin_memcpy(w, v, sizeof w);
    __builtin_memmove(w + 1, w, 4 * sizeof *w);
    u64 r = 0;
    for (int i = 0; i < 6; i++) r = r * 3 ^ w[i];
    return r;
}
CASE2(u32, copy_of_length, u64, u32) {
    u8 from[16], to[16] = {1, 2, 3};
    for (u32 i = 0; i < 16; i++) from[i] = a >> i * 3;
    __builtin_memcpy(to + (b & 3), from + (b >> 2 & 3), b >> 4 & 7);
    u32 r = 0;
    for (u32 i = 0; i < 16; i++) r = r * 33 + to[i];
    return r;
}
static const s16 squares[] = {0, 1, 4, 9, 16, 25, 36, 49, 64, 81, 100, -121, -144, -169, -196, -225};
static const f64 roots[4] = {1, 1.4142135623730951, 1.7320508075688772, 2};
static const u8 text[] = "the quick brown fox jumps over the lazy dog";
static const struct {
    u32 key;
    const u8 *at;
} places[] = {{3, text + 4}, {7, text + 10}, {12, text + 16}, {40, text}};
CASE2(f64, constant_tables, u32, u32) { return squares[a & 15] * roots[b & 3] + text[(a ^ b) % sizeof text]; }
CASE1(u32, constant_pointers, u32) { return places[a & 3].at[a >> 2 & 3] + places[a >> 4 & 3].key * 256; }
CASE1(u32, search_table, u32) {
    u32 low = 0, high = 11, x = a % 110;
    while (low < high) {
        u32 middle = (low + high) / 2;
        if (squares[middle] >= 0 && (u32)squares[middle] < x) low = middle + 1;
        else high = middle;
    }
    return low;
}
CASE1(u32, string_length, u32) {
    const u8 *p = text + a % sizeof text, *from = p;
    while (*p && *p != ' ') p++;
    return p - from;
}
CASE2(u32, linked_list, u32, u32) {
    struct node {
        u32 value;
        struct node *next;
    } nodes[6], *head = 0, *p;
    for (u32 i = 0; i < 6; i++) {
        nodes[i].value = a >> i * 4 & 15;
        if (b >> i & 1) {
            nodes[i].next = head;
            head = &nodes[i];
        }
    }
    u32 r = 0;
    for (p = head; p; p = p->next) r = r * 17 + p->value;
    return r;
}
CASE2(u32, pointers_to_pointers, u32, u32) {
    u32 x = a, y = b, *p = &x, *q = &y, **r = a & 1 ? &p : &q;
    *r = *r == p ? q : p;
    **r += 10;
    *p ^= 3;
    return x * 3 + y + (p == q);
}
CASE2(u32, volatile_cells, u32, u32) {
    volatile u16 v[2] = {a, b};
    v[0] += v[1];
    v[1] = v[0] ^ v[1];
    return v[0] | (u32)v[1] << 16;
}
