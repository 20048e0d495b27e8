// The C half of the native driver: few, coarse functions, so that Go crosses into C once per buffer, pipeline, bind group or
// submission. No function here calls back into Go and none keeps a Go pointer: completion is a word in C memory that Go polls.
#ifndef WAVELANE_SHIM_H
#define WAVELANE_SHIM_H

#include <stddef.h>
#include <stdint.h>

// Handles cross as integers so that Go slices of these structs hold no pointers for cgo to check.
typedef uintptr_t wl_handle;

// The first error of one call. kind is a WGPUErrorType; message is malloc'ed and the caller's.
typedef struct {
    int32_t kind;
    char *message;
} wl_error;

typedef struct {
    char name[256], driver[256], driver_info[256];
    uint32_t backend, type, vendor_id, device_id;
    uint32_t timestamps;
    uint64_t max_buffer, max_storage_binding, max_uniform_binding;
    uint32_t max_storage_buffers, storage_align, uniform_align, max_shared, max_invocations, max_size[3], max_groups;
} wl_adapter_info;

typedef struct wl_device wl_device;

typedef struct {
    uint32_t binding, kind; // kind is a WGPUBufferBindingType; uniforms have a dynamic offset
} wl_layout_entry;

typedef struct {
    wl_handle layout; // of its bind group
    wl_handle pipeline;
} wl_pipeline;

typedef struct {
    wl_handle buffer;
    uint64_t offset, size;
} wl_binding;

enum { WL_DISPATCH = 0, WL_COPY = 1, WL_TIMESTAMP = 2 };

typedef struct {
    uint32_t kind;
    uint32_t dynamic, has_dynamic; // uniform offset of a dispatch
    uint32_t x, y, z;              // workgroups
    wl_handle a, b;                // pipeline and bind group, or source and destination
    uint64_t from, to, size;       // of a copy
} wl_command;

// States of a submission's words, which live in C memory until their callbacks have fired: one for the work, one for the
// timestamps, one per staging buffer.
enum { WL_PENDING = 0, WL_DONE = 1, WL_FAILED = 2 };
enum { WL_WORK = 0, WL_STAMPS = 1, WL_STAGING = 2 };

typedef struct {
    wl_handle queries, resolve, staging;
    uint32_t count; // the first and the last of a submission, then its commands WL_TIMESTAMP
} wl_stamps;

typedef struct {
    wl_handle buffer;
    uint64_t size;
    uint32_t upload; // written by the host: unmapped before the submission
} wl_staging;

// An instance loads the drivers. Callers serialise these three functions over the process.
wl_handle wl_instance_new(void);
size_t wl_adapters(wl_handle instance, wl_handle *adapters, size_t capacity);
void wl_instance_release(wl_handle instance);

void wl_adapter_describe(wl_handle adapter, wl_adapter_info *info);
void wl_adapter_release(wl_handle adapter);

// The device takes over the instance; see driver_native.go for why each has its own.
wl_device *wl_device_open(wl_handle instance, wl_handle adapter, const wl_adapter_info *want, wl_error *err);
void wl_device_close(wl_device *d);
void wl_device_abandon(wl_device *d);
int wl_device_lost(wl_device *d, char *message, size_t capacity);
void wl_device_lose(wl_device *d, const char *message);
void wl_device_poll(wl_device *d, int64_t pause, wl_error *err); // pause: nanoseconds before, below one second

wl_handle wl_buffer_new(wl_device *d, uint32_t usage, uint64_t size, int mapped, void **at, wl_error *err);
void wl_buffer_free(wl_handle buffer);
void *wl_buffer_mapped(wl_handle buffer, uint64_t size, int writable);
void wl_buffer_unmap(wl_device *d, wl_handle buffer, wl_error *err);

void wl_pipeline_new(wl_device *d, const char *label, const char *source, const char *entry,
    const wl_layout_entry *entries, size_t count, wl_pipeline *out, int *in_shader, wl_error *err);
void wl_pipeline_free(wl_pipeline p);

wl_handle wl_group_new(wl_device *d, wl_handle layout, const wl_binding *bindings, size_t count, wl_error *err);
void wl_group_free(wl_handle group);

int wl_stamps_new(wl_device *d, uint32_t count, wl_stamps *out, wl_error *err);
void wl_stamps_free(wl_stamps s);

// Records and submits everything, in command buffers that end at the cuts and at the end, then asks for the staging buffers to be
// mapped. Returns whether anything was submitted: not all of it if err is set.
int wl_submit(wl_device *d, const wl_command *commands, size_t count, const size_t *cuts, size_t cut_count,
    const wl_staging *staging, size_t staging_count, wl_stamps stamps, int32_t *words, wl_error *err);

#endif
