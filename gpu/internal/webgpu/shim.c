//go:build cgo && !js

#include "shim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef _WIN32
#include <windows.h>
#else
#include <time.h>
#endif

#include "webgpu_abi.h"

// How errors travel. wgpu-native reports each error synchronously, on the thread of the call that caused it, to the
// device's callbacks. Every function below points this at its caller's wl_error for the time of the call, so errors of
// concurrent calls cannot mix, which WebGPU's error scopes, one stack per device, would let them do. Validation,
// out-of-memory and loss all arrive this way, and nothing reaches the default handlers, which abort.
static _Thread_local wl_error *current;

static void fail(int32_t kind, const char *message) {
    if (current && current->kind == WGPUErrorType_NoError) { // later ones are consequences of the first
        current->kind = kind;
        current->message = strdup(message ? message : "");
    }
}

static void begin(wl_error *err) {
    err->kind = WGPUErrorType_NoError;
    err->message = NULL;
    current = err;
}

static int end(wl_error *err) {
    current = NULL;
    return err->kind == WGPUErrorType_NoError;
}

struct wl_device {
    WGPUInstance instance;
    WGPUDevice device;
    WGPUQueue queue;
    int32_t lost;
    char lost_message[512]; // complete before lost is set
};

static void on_uncaptured(WGPUErrorType type, char const *message, void *userdata) {
    (void)userdata;
    fail(type, message);
}

void wl_device_lose(wl_device *d, const char *message) {
    int32_t none = 0;
    if (__atomic_compare_exchange_n(&d->lost, &none, 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        snprintf(d->lost_message, sizeof d->lost_message, "%s", message ? message : "");
        __atomic_store_n(&d->lost, 2, __ATOMIC_RELEASE);
    }
}

static void on_lost(WGPUDeviceLostReason reason, char const *message, void *userdata) {
    (void)reason;
    wl_device_lose(userdata, message);
    fail(WGPUErrorType_DeviceLost, message);
}

int wl_device_lost(wl_device *d, char *message, size_t capacity) {
    if (__atomic_load_n(&d->lost, __ATOMIC_ACQUIRE) != 2) return 0;
    if (message) snprintf(message, capacity, "%s", d->lost_message);
    return 1;
}

// ---- adapters

#ifdef _WIN32
static void quiet(void) {}
static void restore(void) {}
#else
// Mesa's device-select layer looks for a Wayland compositor whenever devices are enumerated, and libwayland complains on
// stderr when XDG_RUNTIME_DIR is unset, as it is in services and containers. Any absolute path silences it; this one
// cannot be anybody's socket. Only C's environment changes, only where it was unset, and only for the call.
static int placed;
static void quiet(void) {
    placed = getenv("XDG_RUNTIME_DIR") == NULL && setenv("XDG_RUNTIME_DIR", "/nonexistent", 0) == 0;
}
static void restore(void) {
    if (placed) unsetenv("XDG_RUNTIME_DIR");
}
#endif

static WGPUInstanceBackendFlags backends(void) {
    return WGPUInstanceBackend_Vulkan | WGPUInstanceBackend_Metal | WGPUInstanceBackend_DX12; // no GL: see doc.go
}

wl_handle wl_instance_new(void) {
    wgpuSetLogLevel(WGPULogLevel_Off);
    // Labels are kept: without them Direct3D's compiler is given an invalid pointer for the name of a kernel.
    WGPUInstanceExtras extras = {
        .chain = {.sType = (WGPUSType)WGPUSType_InstanceExtras},
        .backends = backends(),
    };
    WGPUInstanceDescriptor desc = {.nextInChain = &extras.chain};
    quiet();
    WGPUInstance instance = wgpuCreateInstance(&desc);
    restore();
    return (wl_handle)instance;
}

size_t wl_adapters(wl_handle instance, wl_handle *adapters, size_t capacity) {
    WGPUInstanceEnumerateAdapterOptions options = {.backends = backends()};
    quiet();
    size_t n = wgpuInstanceEnumerateAdapters((WGPUInstance)instance, &options, NULL);
    if (n > capacity) n = 0;
    if (n > 0) n = wgpuInstanceEnumerateAdapters((WGPUInstance)instance, &options, (WGPUAdapter *)adapters);
    restore();
    return n;
}

void wl_instance_release(wl_handle instance) { wgpuInstanceRelease((WGPUInstance)instance); }

static void text(char *to, size_t size, const char *from) { snprintf(to, size, "%s", from ? from : ""); }

void wl_adapter_describe(wl_handle adapter, wl_adapter_info *out) {
    memset(out, 0, sizeof *out);
    WGPUAdapterInfo info = {0};
    wgpuAdapterGetInfo((WGPUAdapter)adapter, &info);
    if (info.vendor && strncmp(info.vendor, "0x", 2) == 0) { // builds up to v22.1.0.3: numbers, and the name last
        text(out->name, sizeof out->name, info.description);
    } else {
        text(out->name, sizeof out->name, info.device);
        text(out->driver, sizeof out->driver, info.vendor);
        text(out->driver_info, sizeof out->driver_info, info.description);
    }
    out->backend = info.backendType;
    out->type = info.adapterType;
    out->vendor_id = info.vendorID;
    out->device_id = info.deviceID;
    wgpuAdapterInfoFreeMembers(info);

    WGPUSupportedLimits limits = {0};
    wgpuAdapterGetLimits((WGPUAdapter)adapter, &limits);
    WGPULimits *l = &limits.limits;
    out->max_buffer = l->maxBufferSize;
    out->max_storage_binding = l->maxStorageBufferBindingSize;
    out->max_uniform_binding = l->maxUniformBufferBindingSize;
    out->max_storage_buffers = l->maxStorageBuffersPerShaderStage;
    out->storage_align = l->minStorageBufferOffsetAlignment;
    out->uniform_align = l->minUniformBufferOffsetAlignment;
    out->max_shared = l->maxComputeWorkgroupStorageSize;
    out->max_invocations = l->maxComputeInvocationsPerWorkgroup;
    out->max_size[0] = l->maxComputeWorkgroupSizeX;
    out->max_size[1] = l->maxComputeWorkgroupSizeY;
    out->max_size[2] = l->maxComputeWorkgroupSizeZ;
    out->max_groups = l->maxComputeWorkgroupsPerDimension;

    size_t n = wgpuAdapterEnumerateFeatures((WGPUAdapter)adapter, NULL);
    WGPUFeatureName *features = calloc(n ? n : 1, sizeof *features);
    if (features && n > 0) {
        wgpuAdapterEnumerateFeatures((WGPUAdapter)adapter, features);
        for (size_t i = 0; i < n; i++) {
            out->timestamps |= features[i] == WGPUFeatureName_TimestampQuery;
        }
    }
    free(features);
}

void wl_adapter_release(wl_handle adapter) { wgpuAdapterRelease((WGPUAdapter)adapter); }

// ---- device

static void on_device(WGPURequestDeviceStatus status, WGPUDevice device, char const *message, void *userdata) {
    if (status == WGPURequestDeviceStatus_Success)
        ((wl_device *)userdata)->device = device;
    else
        fail(WGPUErrorType_Unknown, message);
}

wl_device *wl_device_open(wl_handle instance, wl_handle adapter, const wl_adapter_info *want, wl_error *err) {
    begin(err);
    wl_device *d = calloc(1, sizeof *d);
    if (!d) {
        fail(WGPUErrorType_OutOfMemory, "no memory");
        end(err);
        return NULL;
    }
    // Everything the adapter offers, except where want says less.
    WGPUSupportedLimits supported = {0};
    wgpuAdapterGetLimits((WGPUAdapter)adapter, &supported);
    WGPURequiredLimits limits = {.limits = supported.limits};
    WGPULimits *l = &limits.limits;
    l->maxBufferSize = want->max_buffer;
    l->maxStorageBufferBindingSize = want->max_storage_binding;
    l->maxStorageBuffersPerShaderStage = want->max_storage_buffers;
    l->minStorageBufferOffsetAlignment = want->storage_align;
    l->maxComputeWorkgroupStorageSize = want->max_shared;
    l->maxComputeInvocationsPerWorkgroup = want->max_invocations;
    l->maxComputeWorkgroupSizeX = want->max_size[0];
    l->maxComputeWorkgroupSizeY = want->max_size[1];
    l->maxComputeWorkgroupSizeZ = want->max_size[2];
    l->maxComputeWorkgroupsPerDimension = want->max_groups;
    WGPUFeatureName features[1];
    size_t count = 0;
    if (want->timestamps) features[count++] = WGPUFeatureName_TimestampQuery;
    WGPUDeviceDescriptor desc = {
        .requiredFeatureCount = count,
        .requiredFeatures = features,
        .requiredLimits = &limits,
        .deviceLostCallback = on_lost,
        .deviceLostUserdata = d,
        .uncapturedErrorCallbackInfo = {.callback = on_uncaptured},
    };
    wgpuAdapterRequestDevice((WGPUAdapter)adapter, &desc, on_device, d); // calls back before it returns
    if (d->device) d->queue = wgpuDeviceGetQueue(d->device);
    if (!end(err) || !d->device) {
        free(d);
        return NULL;
    }
    d->instance = (WGPUInstance)instance;
    return d;
}

void wl_device_close(wl_device *d) {
    wgpuQueueRelease(d->queue);
    wgpuDeviceRelease(d->device);
    wgpuInstanceRelease(d->instance);
    free(d);
}

// Releasing a device waits for its queue, which aborts the process if the device is lost: leak it instead.
void wl_device_abandon(wl_device *d) { (void)d; }

// Go's timers are good to a millisecond only when nothing else runs: short pauses have to be made here.
void wl_device_poll(wl_device *d, int64_t pause, wl_error *err) {
#ifdef _WIN32
    Sleep((DWORD)(pause / 1000000)); // whole milliseconds are all there is; 0 yields
#else
    struct timespec t = {.tv_nsec = pause};
    if (pause > 0) nanosleep(&t, NULL);
#endif
    begin(err);
    wgpuDevicePoll(d->device, 0, NULL);
    end(err);
}

// ---- buffers

wl_handle wl_buffer_new(wl_device *d, uint32_t usage, uint64_t size, int mapped, void **at, wl_error *err) {
    begin(err);
    WGPUBufferDescriptor desc = {.usage = usage, .size = size, .mappedAtCreation = mapped != 0};
    WGPUBuffer b = wgpuDeviceCreateBuffer(d->device, &desc);
    if (!end(err)) { // asking an invalid buffer for its mapping would abort
        wgpuBufferRelease(b);
        return 0;
    }
    if (mapped) *at = wgpuBufferGetMappedRange(b, 0, (size_t)size);
    return (wl_handle)b;
}

// Only for buffers that no submission in flight uses. Destroying frees the memory now; releasing alone waits for a poll.
void wl_buffer_free(wl_handle buffer) {
    wgpuBufferDestroy((WGPUBuffer)buffer);
    wgpuBufferRelease((WGPUBuffer)buffer);
}

// Only for buffers known to be mapped: anything else aborts.
void *wl_buffer_mapped(wl_handle buffer, uint64_t size, int writable) {
    return writable ? wgpuBufferGetMappedRange((WGPUBuffer)buffer, 0, (size_t)size)
                    : (void *)wgpuBufferGetConstMappedRange((WGPUBuffer)buffer, 0, (size_t)size);
}

void wl_buffer_unmap(wl_device *d, wl_handle buffer, wl_error *err) {
    (void)d;
    begin(err);
    wgpuBufferUnmap((WGPUBuffer)buffer);
    end(err);
}

// ---- pipelines and bind groups

void wl_pipeline_new(wl_device *d, const char *label, const char *source, const char *entry,
    const wl_layout_entry *entries, size_t count, wl_pipeline *out, int *in_shader, wl_error *err) {
    begin(err);
    memset(out, 0, sizeof *out);
    *in_shader = 1;
    WGPUShaderModuleWGSLDescriptor wgsl = {
        .chain = {.sType = WGPUSType_ShaderModuleWGSLDescriptor}, .code = source};
    WGPUShaderModuleDescriptor module_desc = {.nextInChain = &wgsl.chain, .label = label};
    WGPUShaderModule module = wgpuDeviceCreateShaderModule(d->device, &module_desc);
    if (err->kind != WGPUErrorType_NoError) { // going on with an invalid module aborts
        wgpuShaderModuleRelease(module);
        end(err);
        return;
    }
    *in_shader = 0;
    WGPUBindGroupLayoutEntry *list = calloc(count ? count : 1, sizeof *list);
    if (!list) {
        fail(WGPUErrorType_OutOfMemory, "no memory");
        wgpuShaderModuleRelease(module);
        end(err);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        list[i].binding = entries[i].binding;
        list[i].visibility = WGPUShaderStage_Compute;
        list[i].buffer.type = entries[i].kind;
        list[i].buffer.hasDynamicOffset = entries[i].kind == WGPUBufferBindingType_Uniform;
    }
    WGPUBindGroupLayoutDescriptor group_desc = {.entryCount = count, .entries = list};
    WGPUBindGroupLayout group = wgpuDeviceCreateBindGroupLayout(d->device, &group_desc);
    free(list);
    WGPUPipelineLayout layout = NULL;
    WGPUComputePipeline pipeline = NULL;
    if (err->kind == WGPUErrorType_NoError) {
        WGPUPipelineLayoutDescriptor layout_desc = {.bindGroupLayoutCount = 1, .bindGroupLayouts = &group};
        layout = wgpuDeviceCreatePipelineLayout(d->device, &layout_desc);
    }
    if (err->kind == WGPUErrorType_NoError) {
        WGPUComputePipelineDescriptor desc = {
            .label = label, .layout = layout, .compute = {.module = module, .entryPoint = entry}};
        pipeline = wgpuDeviceCreateComputePipeline(d->device, &desc);
    }
    if (layout) wgpuPipelineLayoutRelease(layout);
    wgpuShaderModuleRelease(module);
    if (!end(err)) {
        if (pipeline) wgpuComputePipelineRelease(pipeline);
        wgpuBindGroupLayoutRelease(group);
        return;
    }
    out->layout = (wl_handle)group;
    out->pipeline = (wl_handle)pipeline;
}

void wl_pipeline_free(wl_pipeline p) {
    wgpuComputePipelineRelease((WGPUComputePipeline)p.pipeline);
    wgpuBindGroupLayoutRelease((WGPUBindGroupLayout)p.layout);
}

wl_handle wl_group_new(wl_device *d, wl_handle layout, const wl_binding *bindings, size_t count, wl_error *err) {
    begin(err);
    WGPUBindGroupEntry few[16] = {{0}}, *entries = few;
    if (count > 16 && !(entries = calloc(count, sizeof *entries))) {
        fail(WGPUErrorType_OutOfMemory, "no memory");
        end(err);
        return 0;
    }
    for (size_t i = 0; i < count; i++) {
        entries[i].binding = (uint32_t)i;
        entries[i].buffer = (WGPUBuffer)bindings[i].buffer;
        entries[i].offset = bindings[i].offset;
        entries[i].size = bindings[i].size;
    }
    WGPUBindGroupDescriptor desc = {.layout = (WGPUBindGroupLayout)layout, .entryCount = count, .entries = entries};
    WGPUBindGroup g = wgpuDeviceCreateBindGroup(d->device, &desc);
    if (entries != few) free(entries);
    if (!end(err)) {
        wgpuBindGroupRelease(g);
        return 0;
    }
    return (wl_handle)g;
}

void wl_group_free(wl_handle group) { wgpuBindGroupRelease((WGPUBindGroup)group); }

// ---- timestamps

int wl_stamps_new(wl_device *d, uint32_t count, wl_stamps *out, wl_error *err) {
    begin(err);
    memset(out, 0, sizeof *out);
    WGPUQuerySetDescriptor q = {.type = WGPUQueryType_Timestamp, .count = count};
    WGPUBufferDescriptor r = {.usage = WGPUBufferUsage_QueryResolve | WGPUBufferUsage_CopySrc, .size = 8 * count};
    WGPUBufferDescriptor s = {.usage = WGPUBufferUsage_MapRead | WGPUBufferUsage_CopyDst, .size = 8 * count};
    WGPUQuerySet queries = wgpuDeviceCreateQuerySet(d->device, &q);
    WGPUBuffer resolve = wgpuDeviceCreateBuffer(d->device, &r), staging = wgpuDeviceCreateBuffer(d->device, &s);
    wl_stamps made = {(wl_handle)queries, (wl_handle)resolve, (wl_handle)staging, count};
    if (!end(err)) {
        wl_stamps_free(made);
        return 0;
    }
    *out = made;
    return 1;
}

void wl_stamps_free(wl_stamps s) {
    wgpuQuerySetRelease((WGPUQuerySet)s.queries);
    wgpuBufferRelease((WGPUBuffer)s.resolve);
    wgpuBufferRelease((WGPUBuffer)s.staging);
}

// ---- submission

static void on_work(WGPUQueueWorkDoneStatus status, void *word) {
    int32_t v = status == WGPUQueueWorkDoneStatus_Success ? WL_DONE : WL_FAILED;
    __atomic_store_n((int32_t *)word, v, __ATOMIC_RELEASE);
}

static void on_mapped(WGPUBufferMapAsyncStatus status, void *word) {
    int32_t v = status == WGPUBufferMapAsyncStatus_Success ? WL_DONE : WL_FAILED;
    __atomic_store_n((int32_t *)word, v, __ATOMIC_RELEASE);
}

// record makes a command buffer; the first and the last of a submission take the time, if stamps are given.
static WGPUCommandBuffer record(
    wl_device *d, const wl_command *commands, size_t count, wl_stamps stamps, uint32_t *stamp, int first, int last, wl_error *err) {
    WGPUCommandEncoderDescriptor desc = {0};
    WGPUCommandEncoder enc = wgpuDeviceCreateCommandEncoder(d->device, &desc);
    WGPUQuerySet queries = (WGPUQuerySet)stamps.queries;
    if (queries && first) wgpuCommandEncoderWriteTimestamp(enc, queries, 0);
    WGPUComputePassEncoder pass = NULL; // held open from dispatch to dispatch: a pass of its own costs more than a dispatch
    wl_handle pipeline = 0;
    for (size_t i = 0; i < count && err->kind == WGPUErrorType_NoError; i++) {
        const wl_command *c = &commands[i];
        if (c->kind != WL_DISPATCH && pass) {
            wgpuComputePassEncoderEnd(pass);
            wgpuComputePassEncoderRelease(pass);
            pass = NULL;
        }
        if (c->kind == WL_TIMESTAMP) {
            wgpuCommandEncoderWriteTimestamp(enc, queries, (*stamp)++);
            continue;
        }
        if (c->kind == WL_COPY) {
            wgpuCommandEncoderCopyBufferToBuffer(
                enc, (WGPUBuffer)c->a, c->from, (WGPUBuffer)c->b, c->to, c->size);
            continue;
        }
        if (!pass) {
            WGPUComputePassDescriptor pass_desc = {0};
            pass = wgpuCommandEncoderBeginComputePass(enc, &pass_desc);
            pipeline = 0;
        }
        if (c->a != pipeline) {
            wgpuComputePassEncoderSetPipeline(pass, (WGPUComputePipeline)c->a);
            pipeline = c->a;
        }
        wgpuComputePassEncoderSetBindGroup(pass, 0, (WGPUBindGroup)c->b, c->has_dynamic, &c->dynamic);
        wgpuComputePassEncoderDispatchWorkgroups(pass, c->x, c->y, c->z);
    }
    if (pass) {
        wgpuComputePassEncoderEnd(pass); // reports what dispatches did wrong
        wgpuComputePassEncoderRelease(pass);
    }
    WGPUCommandBuffer cb = NULL;
    if (err->kind == WGPUErrorType_NoError) {
        if (queries && last) {
            WGPUBuffer resolve = (WGPUBuffer)stamps.resolve;
            wgpuCommandEncoderWriteTimestamp(enc, queries, 1);
            wgpuCommandEncoderResolveQuerySet(enc, queries, 0, stamps.count, resolve, 0);
            wgpuCommandEncoderCopyBufferToBuffer(enc, resolve, 0, (WGPUBuffer)stamps.staging, 0, 8 * stamps.count);
        }
        cb = wgpuCommandEncoderFinish(enc, NULL);
    }
    wgpuCommandEncoderRelease(enc);
    return cb;
}

int wl_submit(wl_device *d, const wl_command *commands, size_t count, const size_t *cuts, size_t cut_count,
    const wl_staging *staging, size_t staging_count, wl_stamps stamps, int32_t *words, wl_error *err) {
    begin(err);
    int submitted = 0;
    uint32_t stamp = 2; // the first two are those of the submission
    for (size_t i = 0, from = 0; i <= cut_count; i++) {
        size_t to = i < cut_count ? cuts[i] : count;
        WGPUCommandBuffer cb = record(d, commands + from, to - from, stamps, &stamp, i == 0, i == cut_count, err);
        // A buffer still mapped, or a command buffer that failed to finish, must never reach the queue: it aborts the process.
        for (size_t j = 0; i == 0 && j < staging_count && err->kind == WGPUErrorType_NoError; j++)
            if (staging[j].upload) wgpuBufferUnmap((WGPUBuffer)staging[j].buffer);
        if (err->kind == WGPUErrorType_NoError) {
            wgpuQueueSubmit(d->queue, 1, &cb);
            submitted = 1;
        }
        if (cb) wgpuCommandBufferRelease(cb);
        if (err->kind != WGPUErrorType_NoError) break;
        from = to;
    }
    if (!submitted) {
        end(err);
        return 0;
    }
    wl_error recorded = *err; // what the rest of the work failed with
    err->kind = WGPUErrorType_NoError;
    err->message = NULL;
    // The mappings wait for the submission; their callbacks fire from the same poll as the work's.
    wgpuQueueOnSubmittedWorkDone(d->queue, on_work, &words[WL_WORK]);
    for (size_t i = 0; i < staging_count; i++)
        wgpuBufferMapAsync((WGPUBuffer)staging[i].buffer, staging[i].upload ? WGPUMapMode_Write : WGPUMapMode_Read, 0,
            (size_t)staging[i].size, on_mapped, &words[WL_STAGING + i]);
    if (stamps.queries)
        wgpuBufferMapAsync((WGPUBuffer)stamps.staging, WGPUMapMode_Read, 0, 8 * stamps.count, on_mapped, &words[WL_STAMPS]);
    else
        words[WL_STAMPS] = WL_DONE;
    end(err);
    // The work runs: an error of the mappings is in their words, not in err.
    free(err->message);
    *err = recorded;
    return 1;
}
