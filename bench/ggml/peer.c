// peer [BUFFERS] measures products of ggml with quantised weights on the CPU; bench drives it as it drives processes of its own, with
// lines of JSON: {"case":"Q4_K/8","threads":2} makes weights of 4096 rows of 14336 values and 8 rows of x; {"calls":3} multiplies them
// three times and answers {"ns":…}. The case matvec_f16/512x256 is 512 rows of 256 halves times one of x. BUFFERS is the name of a
// buffer type, such as CPU_REPACK, into which weights are rearranged.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "ggml-cpu.h"
#include "ggml.h"

enum { DISTINCT = 64 }; // as many rows are quantised, and repeated

static ggml_backend_t backend;
static ggml_backend_buffer_type_t buffers;
static struct {
	struct ggml_context * matrix, * context;
	ggml_backend_buffer_t weights, rest;
	struct ggml_cgraph * graph;
} now;

static double nanoseconds(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return 1e9 * (double) t.tv_sec + (double) t.tv_nsec;
}

static float uniform(void) { return 2 * (float) rand() / (float) RAND_MAX - 1; }

static enum ggml_type type_named(const char * name) {
	for (int t = 0; t < GGML_TYPE_COUNT; t++) {
		const char * s = ggml_type_name((enum ggml_type) t);
		if (s && strcasecmp(s, name) == 0) {
			return (enum ggml_type) t;
		}
	}
	return GGML_TYPE_COUNT;
}

static void leave(void) {
	ggml_backend_buffer_free(now.weights);
	ggml_backend_buffer_free(now.rest);
	ggml_free(now.matrix);
	ggml_free(now.context);
	memset(&now, 0, sizeof now);
}

// prepare makes weights of n rows of k values; it returns what is wrong, or NULL.
static const char * prepare(const char * name, int n, int k, int rows, int threads) {
	leave();
	enum ggml_type type = type_named(name);
	if (type == GGML_TYPE_COUNT || n < 1 || k < 1 || rows < 1) {
		return "no such case";
	}
	struct ggml_init_params params = { 64 * ggml_tensor_overhead() + ggml_graph_overhead(), NULL, true };
	now.matrix = ggml_init(params);
	struct ggml_tensor * w = ggml_new_tensor_2d(now.matrix, type, k, n);
	now.weights = ggml_backend_alloc_ctx_tensors_from_buft(now.matrix, buffers);
	if (!now.weights) {
		return "no memory";
	}
	ggml_backend_buffer_set_usage(now.weights, GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
	struct ggml_context * c = now.context = ggml_init(params);
	struct ggml_tensor * x = ggml_new_tensor_2d(c, GGML_TYPE_F32, k, rows);
	struct ggml_tensor * y = ggml_mul_mat(c, w, x);
	now.rest = ggml_backend_alloc_ctx_tensors(c, backend);
	if (!ggml_backend_supports_op(backend, y)) {
		return "not supported";
	}
	int distinct = n < DISTINCT ? n : DISTINCT;
	float * values = malloc(sizeof(float) * (size_t) distinct * k);
	size_t part = ggml_row_size(type, k) * distinct;
	char * blocks = malloc(part * (n / distinct));
	for (int i = 0; i < distinct * k; i++) {
		values[i] = uniform();
	}
	ggml_quantize_chunk(type, values, blocks, 0, distinct, k, NULL);
	for (int i = 1; i < n / distinct; i++) {
		memcpy(blocks + i * part, blocks, part);
	}
	ggml_backend_tensor_set(w, blocks, 0, part * (n / distinct));
	free(blocks);
	for (int r = 0; r < rows; r++) {
		for (int i = 0; i < k; i++) {
			values[i] = uniform();
		}
		ggml_backend_tensor_set(x, values, sizeof(float) * k * (size_t) r, sizeof(float) * k);
	}
	free(values);
	now.graph = ggml_new_graph(c);
	ggml_build_forward_expand(now.graph, y);
	ggml_backend_cpu_set_n_threads(backend, threads);
	return NULL;
}

int main(int argc, char ** argv) {
	backend = ggml_backend_cpu_init();
	buffers = ggml_backend_cpu_buffer_type();
	if (argc > 1) {
		ggml_backend_dev_t device = ggml_backend_get_device(backend);
		ggml_backend_dev_get_extra_bufts_t extra = (ggml_backend_dev_get_extra_bufts_t) ggml_backend_reg_get_proc_address(
			ggml_backend_dev_backend_reg(device), "ggml_backend_dev_get_extra_bufts");
		ggml_backend_buffer_type_t * all = extra ? extra(device) : NULL;
		while (all && *all && strcmp(ggml_backend_buft_name(*all), argv[1]) != 0) {
			all++;
		}
		if (!all || !*all) {
			fprintf(stderr, "peer: no buffers %s\n", argv[1]);
			return 1;
		}
		buffers = *all;
	}
	char line[256], name[32];
	while (fgets(line, sizeof line, stdin)) {
		int n = 4096, k = 14336, rows = 1, threads = 1, calls = 0;
		if (sscanf(line, "{\"case\":\"matvec_%31[^/]/%dx%d\",\"threads\":%d", name, &n, &k, &threads) >= 3 ||
				sscanf(line, "{\"case\":\"%31[^/]/%d\",\"threads\":%d", name, &rows, &threads) >= 2) {
			const char * wrong = prepare(name, n, k, rows, threads);
			printf(wrong ? "{\"error\":\"%s\"}\n" : "{}\n", wrong);
		} else if (sscanf(line, "{\"calls\":%d", &calls) == 1 && now.graph) {
			double start = nanoseconds();
			for (int i = 0; i < calls; i++) {
				ggml_backend_graph_compute(backend, now.graph);
			}
			printf("{\"ns\":%.0f}\n", nanoseconds() - start);
		} else if (strstr(line, "\"version\"")) {
			printf("{\"version\":\"%s\"}\n", GGML_VERSION_TEXT);
		} else {
			printf("{\"error\":\"not understood\"}\n");
		}
		fflush(stdout);
	}
	leave();
	ggml_backend_free(backend);
	return 0;
}
