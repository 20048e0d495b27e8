package main

/*
#cgo LDFLAGS: -lopenblas
#include <cblas.h>
*/
import "C"

func openblasThreads(n int) { C.openblas_set_num_threads(C.int(n)) }

func openblasVersion() string { return C.GoString(C.openblas_get_config()) }

func openblasGemm(c, a, b []float32, m, k, n int) {
	C.cblas_sgemm(C.CblasRowMajor, C.CblasNoTrans, C.CblasNoTrans, C.int(m), C.int(n), C.int(k), 1,
		(*C.float)(&a[0]), C.int(k), (*C.float)(&b[0]), C.int(n), 0, (*C.float)(&c[0]), C.int(n))
}

func openblasGemv(y, a, x []float32, m, n int) {
	C.cblas_sgemv(C.CblasRowMajor, C.CblasNoTrans, C.int(m), C.int(n), 1, (*C.float)(&a[0]), C.int(n), (*C.float)(&x[0]), 1, 0,
		(*C.float)(&y[0]), 1)
}

func openblasDot(a, b []float32) float32 {
	return float32(C.cblas_sdot(C.int(len(a)), (*C.float)(&a[0]), 1, (*C.float)(&b[0]), 1))
}

func openblasAxpy(y, x []float32, f float32) {
	C.cblas_saxpy(C.int(len(x)), C.float(f), (*C.float)(&x[0]), 1, (*C.float)(&y[0]), 1)
}
