// Functions of the differential test. Each has one to three arguments of 32 or 64 bits and a result: compiled for the host, it enters
// itself into the list of host.c; compiled to PTX it is a visible function, which the test calls from a kernel.
//
// Nothing here may depend on what C leaves undefined, nor on a C library that a GPU has not.
typedef unsigned char u8;
typedef signed char s8;
typedef unsigned short u16;
typedef short s16;
typedef unsigned int u32;
typedef int s32;
typedef unsigned long long u64;
typedef long long s64;
typedef unsigned __int128 u128;
typedef __int128 s128;
typedef float f32;
typedef double f64;
typedef _Bool bool;

#define NOINLINE __attribute__((noinline))

// The bits of a as another type of the same size.
#define BITS(T, a) \
    ({ \
        __typeof__(a) from = (a); \
        T to; \
        _Static_assert(sizeof to == sizeof from, "sizes differ"); \
        __builtin_memcpy(&to, &from, sizeof to); \
        to; \
    })

#ifdef HOST
struct entry {
    const char *name;
    void (*run)(const u64 *in, u64 *out);
    struct entry *next;
};
void enroll(struct entry *);
#define ENTER(R, name, call, ...) \
    R name(__VA_ARGS__); \
    static void run_##name(const u64 *in, u64 *out) { \
        R r = call; \
        *out = 0; \
        __builtin_memcpy(out, &r, sizeof r); \
    } \
    static struct entry entry_##name = {#name, run_##name, 0}; \
    __attribute__((constructor)) static void enroll_##name(void) { enroll(&entry_##name); }
#define ARG(T, i) (*(const T *)(in + i))
#else
#define ENTER(...)
#endif

#define CASE1(R, name, A) \
    ENTER(R, name, name(ARG(A, 0)), A) \
    R name(A a)
#define CASE2(R, name, A, B) \
    ENTER(R, name, name(ARG(A, 0), ARG(B, 1)), A, B) \
    R name(A a, B b)
#define CASE3(R, name, A, B, C) \
    ENTER(R, name, name(ARG(A, 0), ARG(B, 1), ARG(C, 2)), A, B, C) \
    R name(A a, B b, C c)
