package main

/*
#cgo LDFLAGS: -ldl
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>

// Functions of CBLAS whose integers have 32 or 64 bits.
#define FUNCTIONS(I, X)                                                                                                       \
	typedef void (*gemm##X)(int, int, int, I, I, I, float, const float *, I, const float *, I, float, float *, I);            \
	typedef void (*gemv##X)(int, int, I, I, float, const float *, I, const float *, I, float, float *, I);                    \
	typedef float (*dot##X)(I, const float *, I, const float *, I);                                                           \
	typedef void (*axpy##X)(I, float, const float *, I, float *, I);

FUNCTIONS(int32_t, 32)
FUNCTIONS(int64_t, 64)

enum { rowMajor = 101, noTrans = 111, trans = 112 };

// The loops are here so that calls from Go, which take some 40 ns, are no part of what is measured.
static void run_gemm(void *f, int wide, int64_t calls, int64_t batch, int ta, int tb, int64_t m, int64_t n, int64_t k, const float *a,
	const float *b, float *c) {
	ta = ta ? trans : noTrans, tb = tb ? trans : noTrans;
	int64_t lda = ta == trans ? m : k, ldb = tb == trans ? k : n;
	while (calls-- > 0)
		for (int64_t i = 0; i < batch; i++) {
			const float *x = a + i * m * k, *y = b + i * k * n;
			float *z = c + i * m * n;
			if (wide) ((gemm64)f)(rowMajor, ta, tb, m, n, k, 1, x, lda, y, ldb, 0, z, n);
			else ((gemm32)f)(rowMajor, ta, tb, m, n, k, 1, x, lda, y, ldb, 0, z, n);
		}
}
static void run_gemv(void *f, int wide, int64_t calls, int t, int64_t m, int64_t n, const float *a, const float *x, float *y) {
	t = t ? trans : noTrans;
	while (calls-- > 0) {
		if (wide) ((gemv64)f)(rowMajor, t, m, n, 1, a, n, x, 1, 0, y, 1);
		else ((gemv32)f)(rowMajor, t, m, n, 1, a, n, x, 1, 0, y, 1);
	}
}
static float run_dot(void *f, int wide, int64_t calls, int64_t n, const float *x, const float *y) {
	float s = 0;
	while (calls-- > 0) s += wide ? ((dot64)f)(n, x, 1, y, 1) : ((dot32)f)(n, x, 1, y, 1);
	return s;
}
static void run_axpy(void *f, int wide, int64_t calls, int64_t n, float a, const float *x, float *y) {
	while (calls-- > 0) {
		if (wide) ((axpy64)f)(n, a, x, 1, y, 1);
		else ((axpy32)f)(n, a, x, 1, y, 1);
	}
}
static void set_threads(void *f, int n) { ((void (*)(int))f)(n); }
static void set_threads64(void *f, int64_t n) { ((void (*)(int64_t))f)(n); }
static const char *text(void *f) { return ((const char *(*)(void))f)(); }
static void buffer_text(void *f, char *s, int n) { ((void (*)(char *, int))f)(s, n); }
*/
import "C"

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/cpu"
)

// Each BLAS is in a process of its own, with its own threads: they export the same names, and their threads wait actively for
// more work on the cores of whoever is next.

// blasKind is a BLAS that bench knows.
type blasKind struct {
	subject        string
	files          []string // what the dynamic linker finds
	python         string   // the file in a Python's folder that pip installs it in, a pattern
	before, after  string   // the names of functions, in that file
	threads        string   // sets the number of threads
	version, cores string   // return text
	variables      []string // of the process
}

var blasKinds = []blasKind{
	{subject: openblas, python: "lib/python*/site-packages/numpy.libs/libscipy_openblas64_*.so", before: "scipy_", after: "64_",
		threads: "scipy_openblas_set_num_threads64_", version: "scipy_openblas_get_config64_"},
	{subject: openblas, files: []string{"libopenblas.so.0"}, threads: "openblas_set_num_threads", version: "openblas_get_config"},
	{subject: blis, files: []string{"libblis.so.4", "libblis.so.5"}, threads: "bli_thread_set_num_threads", version: "bli_info_get_version_str"},
	{subject: mkl, python: "lib/libmkl_rt.so.*", after: "_64", threads: "MKL_Set_Num_Threads", version: "MKL_Get_Version_String",
		variables: []string{"KMP_BLOCKTIME=10"}},
}

// wide says whether integers have 64 bits.
func (k *blasKind) wide() bool { return strings.Contains(k.after, "64") }

// pythonVariable is the Python whose packages numpy, mkl and onnxruntime are measured.
const pythonVariable = "WAVELANE_PYTHON"

func python() string { return cmp.Or(os.Getenv(pythonVariable), "python3") }

// find returns the path of the library, or "".
func (k *blasKind) find() string {
	for _, name := range k.files {
		if h := C.dlopen(C.CString(name), C.RTLD_LAZY|C.RTLD_LOCAL); h != nil {
			C.dlclose(h)
			return name
		}
	}
	if k.python == "" {
		return ""
	}
	prefix, err := exec.Command(python(), "-c", "import sys; print(sys.prefix)").Output()
	if err != nil {
		return ""
	}
	found, _ := filepath.Glob(filepath.Join(strings.TrimSpace(string(prefix)), k.python))
	return append(found, "")[0]
}

// startBLAS starts a process for each BLAS of the machine: of each the first kind that is there.
func startBLAS() (workers []*worker, versions map[string]string, err error) {
	versions = map[string]string{}
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	for i, k := range blasKinds {
		if versions[k.subject] != "" {
			continue
		}
		path := k.find()
		if path == "" {
			continue
		}
		variables := append([]string{"LD_LIBRARY_PATH=" + filepath.Dir(path)}, k.variables...)
		for {
			w, err := start(k.subject, variables, self, "serve", fmt.Sprint(i), path)
			if err != nil {
				return workers, nil, err
			}
			version, err := w.version()
			if err != nil {
				w.close()
				return workers, nil, err
			}
			// Releases older than a processor fall back to kernels of 2004, and beating those would be no feat.
			if core := coreType(); k.subject == openblas && core != "" && strings.Contains(version, "Prescott") {
				w.close()
				variables = append(variables, coreVariable+"="+core)
				if slices.Contains(os.Environ(), coreVariable+"="+core) {
					return workers, nil, fmt.Errorf("%s: %s", k.subject, version)
				}
				continue
			}
			w.only = func(c Case) bool { return c.BLAS != nil }
			w.spins = true
			workers, versions[k.subject] = append(workers, w), version
			break
		}
	}
	return workers, versions, nil
}

// coreVariable forces the kernels that OpenBLAS takes, when it is loaded.
const coreVariable = "OPENBLAS_CORETYPE"

func coreType() string {
	switch {
	case cpu.X86.HasAVX512F && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512VL:
		return "SkylakeX"
	case cpu.X86.HasAVX2 && cpu.X86.HasFMA:
		return "Haswell"
	}
	return ""
}

// library is a BLAS that is loaded.
type library struct {
	kind   *blasKind
	handle unsafe.Pointer
}

func openLibrary(k *blasKind, path string) (*library, error) {
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	h := C.dlopen(name, C.RTLD_NOW|C.RTLD_LOCAL)
	if h == nil {
		return nil, fmt.Errorf("%s: %s", path, C.GoString(C.dlerror()))
	}
	l := &library{k, h}
	for _, f := range []string{k.threads, k.version, l.function("sgemm"), l.function("sgemv"), l.function("sdot"), l.function("saxpy")} {
		if l.symbol(f) == nil {
			return nil, fmt.Errorf("%s has no %s", path, f)
		}
	}
	return l, nil
}

func (l *library) function(name string) string { return l.kind.before + "cblas_" + name + l.kind.after }

func (l *library) symbol(name string) unsafe.Pointer {
	s := C.CString(name)
	defer C.free(unsafe.Pointer(s))
	return C.dlsym(l.handle, s)
}

func (l *library) wide() C.int {
	if l.kind.wide() {
		return 1
	}
	return 0
}

func (l *library) setThreads(n int) {
	f := l.symbol(l.kind.threads)
	if l.kind.subject == blis {
		C.set_threads64(f, C.int64_t(n))
		return
	}
	C.set_threads(f, C.int(n))
}

func (l *library) version() string {
	f := l.symbol(l.kind.version)
	if l.kind.subject == mkl {
		b := make([]C.char, 256)
		C.buffer_text(f, &b[0], C.int(len(b)-1))
		return strings.TrimSpace(C.GoString(&b[0]))
	}
	text := C.GoString(C.text(f))
	if l.kind.subject == blis {
		text = "BLIS " + text
	}
	return text
}

func flag32(b bool) C.int {
	if b {
		return 1
	}
	return 0
}

func (l *library) gemm(c, a, b []float32, p product) calls {
	f := l.symbol(l.function("sgemm"))
	return func(n int) {
		C.run_gemm(f, l.wide(), C.int64_t(n), C.int64_t(max(p.batch, 1)), flag32(p.transA), flag32(p.transB), C.int64_t(p.m), C.int64_t(p.n),
			C.int64_t(p.k), (*C.float)(&a[0]), (*C.float)(&b[0]), (*C.float)(&c[0]))
	}
}

// gemv computes y = a·x, or its transpose's product, of an m×n matrix.
func (l *library) gemv(y, a, x []float32, m, n int, trans bool) calls {
	f := l.symbol(l.function("sgemv"))
	return func(times int) {
		C.run_gemv(f, l.wide(), C.int64_t(times), flag32(trans), C.int64_t(m), C.int64_t(n), (*C.float)(&a[0]), (*C.float)(&x[0]), (*C.float)(&y[0]))
	}
}

func (l *library) dot(a, b []float32) calls {
	f := l.symbol(l.function("sdot"))
	return func(n int) {
		sink = float32(C.run_dot(f, l.wide(), C.int64_t(n), C.int64_t(len(a)), (*C.float)(&a[0]), (*C.float)(&b[0])))
	}
}

func (l *library) axpy(y, x []float32, a float32) calls {
	f := l.symbol(l.function("saxpy"))
	return func(n int) {
		C.run_axpy(f, l.wide(), C.int64_t(n), C.int64_t(len(x)), C.float(a), (*C.float)(&x[0]), (*C.float)(&y[0]))
	}
}

// serveBLAS is what such a process does.
func serveBLAS(kind, path string) error {
	for i := range blasKinds {
		if fmt.Sprint(i) != kind {
			continue
		}
		l, err := openLibrary(&blasKinds[i], path)
		if err != nil {
			return err
		}
		return serve(os.Stdin, os.Stdout, l.version, func(c Case, threads int) calls {
			if c.BLAS == nil {
				return nil
			}
			run := c.BLAS(l)
			run(1) // MKL loads its threads with the first product, and forgets what was set before
			l.setThreads(threads)
			return run
		})
	}
	return fmt.Errorf("no BLAS %s", kind)
}
