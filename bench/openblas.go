package main

/*
#cgo LDFLAGS: -lopenblas
#include <cblas.h>
*/
import "C"

import (
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/cpu"
)

// coreVariable forces the kernels that OpenBLAS takes, when it is loaded.
const coreVariable = "OPENBLAS_CORETYPE"

// fullOpenBLAS starts the process again with the kernels that fit the processor where OpenBLAS does not know it: releases
// older than a processor fall back to those of 2004, and beating them would be no feat. It returns where there is nothing to do.
func fullOpenBLAS() error {
	if os.Getenv(coreVariable) != "" || !strings.Contains(openblasVersion(), "Prescott") {
		return nil
	}
	var core string
	switch {
	case cpu.X86.HasAVX512F && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512VL:
		core = "SkylakeX"
	case cpu.X86.HasAVX2 && cpu.X86.HasFMA:
		core = "Haswell"
	default:
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	return syscall.Exec(self, os.Args, append(os.Environ(), coreVariable+"="+core))
}

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
