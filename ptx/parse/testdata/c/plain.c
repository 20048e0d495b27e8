// Functions of plain C, as .func: integers of all widths, floats, loops, switches, structures, pointers to functions.
typedef unsigned char u8;
typedef signed char s8;
typedef unsigned short u16;
typedef unsigned long long u64;
typedef long long s64;

struct pair { int a; double b; };
struct big { char c; short s[3]; struct pair p[2]; };

static const int table[5] = {1, -2, 3, -4, 5};
double weights[2][3] = {{1.5, -2.0, 0x1p-1074}, {3.0}};
struct big initial = {'x', {1, 2, 3}, {{7, 8.5}, {9, 10.5}}};
const char *names[2] = {"one", "two"};
int counter;

int add(int a, int b) { return a + b; }
int sub(int a, int b) { return a - b; }
int (*operations[2])(int, int) = {add, sub};

int indirect(int i, int a, int b) { return operations[i & 1](a, b); }
u8 narrow(u8 a, s8 b) { return a * b + (a >> 3); }
u16 middle(u16 a, short b) { return (a << 3) ^ (b >> 2); }
u64 wide(u64 a, s64 b) { return a / 7 + b % 13 + (a >> 5) + (b >> 9) + a * (u64)b; }
unsigned bits(unsigned a) { return __builtin_popcount(a) + __builtin_clz(a | 1) + __builtin_ctz(a | 1) + __builtin_bswap32(a); }
float floats(float a, float b) { return a * b + a / b - __builtin_fabsf(a) + __builtin_sqrtf(b); }
double doubles(double a, double b) { return __builtin_fma(a, b, a) / b > 1 ? -a : b; }
int convert(float f, double d) { return (int)f + (unsigned)d + (s8)f + (int)(s64)d + (int)(u64)f; }
double back(s8 a, u16 b, int c, unsigned d, s64 e, u64 f) { return (float)a + (double)b + (float)c + (double)d + (double)e + (float)f; }
int compare(float a, float b) { return (a < b) + 2 * (a == b) + 4 * !(a >= b) + 8 * __builtin_isunordered(a, b); }

int choose(int x) {
	switch (x) {
	case 0: return 5;
	case 1: return counter++;
	case 2: return 77 * x;
	case 3: return table[x];
	case 4: return x ^ 99;
	case 5: return x << 3;
	case 6: return names[x & 1][1];
	case 7: return -x;
	default: return 0;
	}
}

long sum(const int *p, long n) {
	long s = 0;
	for (long i = 0; i < n; i++)
		s += p[i] > 0 ? p[i] : table[p[i] & 3];
	return s;
}

struct pair swap(struct pair p) {
	struct pair q = {(int)p.b, p.a};
	return q;
}

double nested(struct big b, int i) {
	struct pair p = swap(b.p[i & 1]);
	return p.a + p.b + b.s[i % 3] + weights[i & 1][i & 1];
}

int local(int n) {
	int a[16];
	for (int i = 0; i < 16; i++)
		a[i] = n * i;
	return a[n & 15] + a[(n >> 4) & 15];
}

int recursive(int n) { return n < 2 ? 1 : n * recursive(n - 1); }

void forever(volatile int *p) {
	do {
		*p = *p + 1;
	} while (*p);
}
