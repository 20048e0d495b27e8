// A WebGPU library for the test of how the driver calls one, by the headers of the version VERSION. It has one adapter. Buffers are
// memory, commands are carried out when they are recorded, and a dispatch of a grid (x, y, z) adds x + 100·y + 10,000·z and the first number of the
// uniform to those of binding 0, which it puts into binding 1. What it is not called as it should be ends the process.
#include "webgpu.h"
#include "wgpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(x) do { if (!(x)) { fprintf(stderr, "wgpu.c:%d: %s\n", __LINE__, #x); abort(); } } while (0)
#define BACKENDS (WGPUInstanceBackend_Vulkan | WGPUInstanceBackend_Metal | WGPUInstanceBackend_DX12)

// Handles that need nothing.
static char instance, adapter, queue, encoder, pass, commands, layout;
#define IS(handle, what) CHECK((void *)(handle) == (void *)&what)

struct WGPUDeviceImpl {
    WGPUDeviceDescriptor made;
} the_device;
struct WGPUBufferImpl {
    char *data;
    uint64_t size;
    int mapped;
};
struct WGPUShaderModuleImpl {
    int trusted;
};
struct WGPUBindGroupLayoutImpl {
    size_t n;
};
struct WGPUComputePipelineImpl {
    int trusted;
};
struct WGPUBindGroupImpl {
    WGPUBindGroupEntry entries[3];
};

static void say(WGPUErrorType type, const char *text) {
    WGPUDevice d = &the_device;
    WGPUUncapturedErrorCallbackInfo *c = &d->made.uncapturedErrorCallbackInfo;
    c->callback(&d, type, (WGPUStringView){text, WGPU_STRLEN}, c->userdata1, c->userdata2);
}

static int equal(WGPUStringView v, const char *text) { return v.length == strlen(text) && memcmp(v.data, text, v.length) == 0; }

uint32_t wgpuGetVersion(void) { return VERSION << 24 | 2; }
void wgpuSetLogLevel(WGPULogLevel level) { CHECK(level == WGPULogLevel_Off); }

WGPUInstance wgpuCreateInstance(const WGPUInstanceDescriptor *d) {
    const WGPUInstanceExtras *e = (const WGPUInstanceExtras *)d->nextInChain;
    CHECK(e->chain.sType == (WGPUSType)WGPUSType_InstanceExtras && e->backends == BACKENDS && e->flags == 0);
    return (WGPUInstance)&instance;
}
void wgpuInstanceRelease(WGPUInstance i) { IS(i, instance); }
size_t wgpuInstanceEnumerateAdapters(WGPUInstance i, const WGPUInstanceEnumerateAdapterOptions *o, WGPUAdapter *list) {
    IS(i, instance);
    CHECK(o->backends == BACKENDS);
    if (list != NULL) list[0] = (WGPUAdapter)&adapter;
    return 1;
}
void wgpuAdapterRelease(WGPUAdapter a) { IS(a, adapter); }

static WGPUAdapterInfo info;
WGPUStatus wgpuAdapterGetInfo(WGPUAdapter a, WGPUAdapterInfo *i) {
    IS(a, adapter);
    info = (WGPUAdapterInfo){.vendor = {"maker, cut", 5}, .device = {"stub", WGPU_STRLEN}, .description = {"of a test", 9},
        .backendType = WGPUBackendType_Vulkan, .adapterType = WGPUAdapterType_CPU, .vendorID = 0x10005, .deviceID = 77};
#if VERSION > 27
    info.subgroupMinSize = 4, info.subgroupMaxSize = 8;
#endif
    *i = info;
    return WGPUStatus_Success;
}
void wgpuAdapterInfoFreeMembers(WGPUAdapterInfo i) {
    CHECK(i.vendor.data == info.vendor.data && i.device.length == WGPU_STRLEN && i.description.length == 9);
    CHECK(i.vendorID == 0x10005 && i.deviceID == 77 && i.adapterType == WGPUAdapterType_CPU);
}
WGPUStatus wgpuAdapterGetLimits(WGPUAdapter a, WGPULimits *l) {
    IS(a, adapter);
    l->maxComputeWorkgroupsPerDimension = 65535;
    l->maxComputeInvocationsPerWorkgroup = l->maxComputeWorkgroupSizeX = l->maxComputeWorkgroupSizeY = 256;
    l->maxComputeWorkgroupSizeZ = 64;
    l->maxComputeWorkgroupStorageSize = 16384;
    l->maxStorageBuffersPerShaderStage = 8;
    l->maxStorageBufferBindingSize = 1 << 27;
    l->maxBufferSize = 1ull << 40;
    l->minStorageBufferOffsetAlignment = 32;
    return WGPUStatus_Success;
}
static const WGPUFeatureName features[] = {WGPUFeatureName_ShaderF16, (WGPUFeatureName)WGPUNativeFeature_Subgroup};
void wgpuAdapterGetFeatures(WGPUAdapter a, WGPUSupportedFeatures *f) {
    IS(a, adapter);
    *f = (WGPUSupportedFeatures){2, features};
}
void wgpuSupportedFeaturesFreeMembers(WGPUSupportedFeatures f) { CHECK(f.featureCount == 2 && f.features == features); }

WGPUFuture wgpuAdapterRequestDevice(WGPUAdapter a, const WGPUDeviceDescriptor *d, WGPURequestDeviceCallbackInfo c) {
    IS(a, adapter);
    CHECK(d->requiredFeatureCount == 2 && memcmp(d->requiredFeatures, features, sizeof features) == 0);
    CHECK(d->requiredLimits->maxComputeInvocationsPerWorkgroup == 128 && d->requiredLimits->maxBufferSize == 1ull << 40);
    CHECK(d->deviceLostCallbackInfo.mode == WGPUCallbackMode_AllowSpontaneous && c.mode == WGPUCallbackMode_AllowSpontaneous);
    the_device.made = *d;
    c.callback(WGPURequestDeviceStatus_Success, &the_device, (WGPUStringView){NULL, WGPU_STRLEN}, c.userdata1, c.userdata2);
    return (WGPUFuture){1};
}
WGPUQueue wgpuDeviceGetQueue(WGPUDevice d) {
    IS(d, the_device);
    return (WGPUQueue)&queue;
}
void wgpuDeviceRelease(WGPUDevice d) { IS(d, the_device); }
void wgpuQueueRelease(WGPUQueue q) { IS(q, queue); }

WGPUBuffer wgpuDeviceCreateBuffer(WGPUDevice d, const WGPUBufferDescriptor *b) {
    WGPUBuffer made = calloc(1, sizeof *made);
    IS(d, the_device);
    CHECK(b->usage != 0);
    if (b->size > 1 << 30) {
        say(WGPUErrorType_OutOfMemory, "too much");
        return made;
    }
    *made = (struct WGPUBufferImpl){calloc(1, b->size), b->size, b->mappedAtCreation};
    return made;
}
void wgpuBufferDestroy(WGPUBuffer b) { free(b->data), b->data = NULL; }
void wgpuBufferRelease(WGPUBuffer b) { free(b); }
void *wgpuBufferGetMappedRange(WGPUBuffer b, size_t offset, size_t size) {
    CHECK(b->mapped && offset == 0 && size == b->size);
    return b->data;
}
const void *wgpuBufferGetConstMappedRange(WGPUBuffer b, size_t offset, size_t size) { return wgpuBufferGetMappedRange(b, offset, size); }
void wgpuBufferUnmap(WGPUBuffer b) {
    CHECK(b->mapped);
    b->mapped = 0;
}

// What the next poll calls back.
static struct {
    WGPUBuffer buffer;
    WGPUBufferMapCallbackInfo map;
    WGPUQueueWorkDoneCallbackInfo work;
} waiting[64];
static size_t waits;
WGPUFuture wgpuBufferMapAsync(WGPUBuffer b, WGPUMapMode mode, size_t offset, size_t size, WGPUBufferMapCallbackInfo c) {
    CHECK((mode == WGPUMapMode_Read || mode == WGPUMapMode_Write) && offset == 0 && size == b->size && c.mode == WGPUCallbackMode_AllowSpontaneous);
    CHECK(waits < 64);
    waiting[waits].buffer = b;
    waiting[waits++].map = c;
    return (WGPUFuture){2};
}
WGPUFuture wgpuQueueOnSubmittedWorkDone(WGPUQueue q, WGPUQueueWorkDoneCallbackInfo c) {
    IS(q, queue);
    CHECK(c.mode == WGPUCallbackMode_AllowSpontaneous && waits < 64);
    waiting[waits].buffer = NULL;
    waiting[waits++].work = c;
    return (WGPUFuture){3};
}
WGPUBool wgpuDevicePoll(WGPUDevice d, WGPUBool wait, const WGPUSubmissionIndex *index) {
    const WGPUStringView none = {NULL, WGPU_STRLEN};
    (void)none;
    IS(d, the_device);
    CHECK(!wait && index == NULL);
    for (size_t i = 0; i < waits; i++) {
        if (waiting[i].buffer == NULL) {
            WGPUQueueWorkDoneCallbackInfo c = waiting[i].work;
#if VERSION > 27
            c.callback(WGPUQueueWorkDoneStatus_Success, none, c.userdata1, c.userdata2);
#else
            c.callback(WGPUQueueWorkDoneStatus_Success, c.userdata1, c.userdata2);
#endif
        } else {
            WGPUBufferMapCallbackInfo c = waiting[i].map;
            waiting[i].buffer->mapped = 1;
            c.callback(WGPUMapAsyncStatus_Success, none, c.userdata1, c.userdata2);
        }
    }
    waits = 0;
    return 1;
}

static WGPUShaderModule module(const WGPUShaderModuleDescriptor *s, int trusted) {
    const WGPUShaderSourceWGSL *text = (const WGPUShaderSourceWGSL *)s->nextInChain;
    WGPUShaderModule m = malloc(sizeof *m);
    CHECK(text->chain.sType == WGPUSType_ShaderSourceWGSL);
    CHECK(equal(s->label, trusted ? "own" : "foreign"));
    if (!equal(text->code, "the text")) say(WGPUErrorType_Validation, "Shader 'foreign' parsing error: no text");
    m->trusted = trusted;
    return m;
}
WGPUShaderModule wgpuDeviceCreateShaderModule(WGPUDevice d, const WGPUShaderModuleDescriptor *s) {
    IS(d, the_device);
    return module(s, VERSION == 27 && equal(s->label, "own"));
}
#if VERSION > 27
WGPUShaderModule wgpuDeviceCreateShaderModuleTrusted(WGPUDevice d, const WGPUShaderModuleDescriptor *s, WGPUShaderRuntimeChecks checks) {
    IS(d, the_device);
    CHECK(checks == WGPUShaderRuntimeChecks_BoundsChecks);
    return module(s, 1);
}
#endif
void wgpuShaderModuleRelease(WGPUShaderModule m) { free(m); }
WGPUBindGroupLayout wgpuDeviceCreateBindGroupLayout(WGPUDevice d, const WGPUBindGroupLayoutDescriptor *l) {
    WGPUBindGroupLayout made = malloc(sizeof *made);
    IS(d, the_device);
    CHECK(l->entryCount == 3);
    for (uint32_t i = 0; i < 3; i++) {
        const WGPUBufferBindingType types[] = {WGPUBufferBindingType_ReadOnlyStorage, WGPUBufferBindingType_Storage, WGPUBufferBindingType_Uniform};
        const WGPUBindGroupLayoutEntry *e = &l->entries[i];
        CHECK(e->binding == i && e->visibility == WGPUShaderStage_Compute && e->buffer.type == types[i]);
        CHECK(e->buffer.hasDynamicOffset == (i == 2) && e->texture.sampleType == 0);
    }
    made->n = l->entryCount;
    return made;
}
void wgpuBindGroupLayoutRelease(WGPUBindGroupLayout l) { free(l); }
WGPUPipelineLayout wgpuDeviceCreatePipelineLayout(WGPUDevice d, const WGPUPipelineLayoutDescriptor *l) {
    IS(d, the_device);
    CHECK(l->bindGroupLayoutCount == 1 && l->bindGroupLayouts[0]->n == 3);
    return (WGPUPipelineLayout)&layout;
}
void wgpuPipelineLayoutRelease(WGPUPipelineLayout l) { IS(l, layout); }
WGPUComputePipeline wgpuDeviceCreateComputePipeline(WGPUDevice d, const WGPUComputePipelineDescriptor *p) {
    WGPUComputePipeline made = malloc(sizeof *made);
    IS(d, the_device);
    IS(p->layout, layout);
    CHECK(equal(p->compute.entryPoint, "main") && p->compute.constantCount == 0);
    made->trusted = p->compute.module->trusted;
    return made;
}
void wgpuComputePipelineRelease(WGPUComputePipeline p) { free(p); }
WGPUBindGroup wgpuDeviceCreateBindGroup(WGPUDevice d, const WGPUBindGroupDescriptor *g) {
    WGPUBindGroup made = malloc(sizeof *made);
    IS(d, the_device);
    CHECK(g->layout->n == 3 && g->entryCount == 3);
    for (uint32_t i = 0; i < 3; i++) CHECK(g->entries[i].binding == i && g->entries[i].offset + g->entries[i].size <= g->entries[i].buffer->size);
    memcpy(made->entries, g->entries, sizeof made->entries);
    return made;
}
void wgpuBindGroupRelease(WGPUBindGroup g) { free(g); }

// Nothing here takes the time.
WGPUQuerySet wgpuDeviceCreateQuerySet(WGPUDevice d, const WGPUQuerySetDescriptor *q) { (void)d, (void)q, abort(); }
void wgpuQuerySetRelease(WGPUQuerySet q) { (void)q, abort(); }
void wgpuCommandEncoderWriteTimestamp(WGPUCommandEncoder e, WGPUQuerySet q, uint32_t i) { (void)e, (void)q, (void)i, abort(); }
void wgpuCommandEncoderResolveQuerySet(WGPUCommandEncoder e, WGPUQuerySet q, uint32_t from, uint32_t n, WGPUBuffer to, uint64_t at) {
    (void)e, (void)q, (void)from, (void)n, (void)to, (void)at, abort();
}

WGPUCommandEncoder wgpuDeviceCreateCommandEncoder(WGPUDevice d, const WGPUCommandEncoderDescriptor *e) {
    IS(d, the_device);
    CHECK(e->label.data == NULL);
    return (WGPUCommandEncoder)&encoder;
}
void wgpuCommandEncoderRelease(WGPUCommandEncoder e) { IS(e, encoder); }
void wgpuCommandEncoderCopyBufferToBuffer(WGPUCommandEncoder e, WGPUBuffer from, uint64_t at, WGPUBuffer to, uint64_t where, uint64_t size) {
    IS(e, encoder);
    CHECK(at + size <= from->size && where + size <= to->size);
    memcpy(to->data + where, from->data + at, size);
}
static WGPUComputePipeline pipeline;
static WGPUBindGroup group;
static uint32_t dynamic;
WGPUComputePassEncoder wgpuCommandEncoderBeginComputePass(WGPUCommandEncoder e, const WGPUComputePassDescriptor *p) {
    IS(e, encoder);
    CHECK(p->timestampWrites == NULL);
    return (WGPUComputePassEncoder)&pass;
}
void wgpuComputePassEncoderSetPipeline(WGPUComputePassEncoder p, WGPUComputePipeline to) {
    IS(p, pass);
    pipeline = to;
}
void wgpuComputePassEncoderSetBindGroup(WGPUComputePassEncoder p, uint32_t index, WGPUBindGroup g, size_t n, const uint32_t *offsets) {
    IS(p, pass);
    CHECK(index == 0 && n == 1);
    group = g, dynamic = offsets[0];
}
void wgpuComputePassEncoderDispatchWorkgroups(WGPUComputePassEncoder p, uint32_t x, uint32_t y, uint32_t z) {
    const WGPUBindGroupEntry *e = group->entries;
    const uint32_t *in = (uint32_t *)(e[0].buffer->data + e[0].offset), *add = (uint32_t *)(e[2].buffer->data + e[2].offset + dynamic);
    uint32_t *out = (uint32_t *)(e[1].buffer->data + e[1].offset);
    IS(p, pass);
    CHECK(pipeline->trusted);
    for (size_t i = 0; i < e[1].size / 4; i++) out[i] = in[i] + *add + x + 100 * y + 10000 * z;
}
void wgpuComputePassEncoderEnd(WGPUComputePassEncoder p) { IS(p, pass); }
void wgpuComputePassEncoderRelease(WGPUComputePassEncoder p) { IS(p, pass); }
WGPUCommandBuffer wgpuCommandEncoderFinish(WGPUCommandEncoder e, const WGPUCommandBufferDescriptor *d) {
    IS(e, encoder);
    CHECK(d == NULL);
    return (WGPUCommandBuffer)&commands;
}
void wgpuCommandBufferRelease(WGPUCommandBuffer c) { IS(c, commands); }
void wgpuQueueSubmit(WGPUQueue q, size_t n, const WGPUCommandBuffer *c) {
    WGPUDevice d = &the_device;
    WGPUDeviceLostCallbackInfo *l = &d->made.deviceLostCallbackInfo;
    IS(q, queue);
    CHECK(n == 1);
    IS(c[0], commands);
    if (group != NULL && dynamic == 512) l->callback(&d, WGPUDeviceLostReason_Unknown, (WGPUStringView){"pulled out, they say", 10}, l->userdata1, l->userdata2);
}
