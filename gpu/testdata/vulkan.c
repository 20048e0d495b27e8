// A Vulkan loader that passes everything on to the system's, which is the file in WAVELANE_TEST_VULKAN. While there is a file of the name in
// WAVELANE_TEST_FAIL, submissions fail with the number that the file contains.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void (*function)(void);
#ifdef _WIN32
#include <windows.h>
__declspec(dllexport) function vkGetInstanceProcAddr(void *i, const char *name);
static void *loader(const char *name) { return (void *)GetProcAddress(LoadLibraryA(getenv("WAVELANE_TEST_VULKAN")), name); }
#else
#include <dlfcn.h>
static void *loader(const char *name) { return dlsym(dlopen(getenv("WAVELANE_TEST_VULKAN"), RTLD_NOW), name); }
#endif

static function (*instance)(void *, const char *), (*device)(void *, const char *);
static int (*submit)(void *, unsigned, const void *, void *);

static int faulty_submit(void *queue, unsigned n, const void *infos, void *fence) {
    FILE *f = fopen(getenv("WAVELANE_TEST_FAIL"), "r");
    int result, failing;
    if (f == NULL) return submit(queue, n, infos, fence);
    failing = fscanf(f, "%d", &result) == 1;
    fclose(f);
    return failing ? result : submit(queue, n, infos, fence);
}

static function faulty_device(void *d, const char *name) {
    function f = device(d, name);
    if (strcmp(name, "vkQueueSubmit") != 0) return f;
    submit = (int (*)(void *, unsigned, const void *, void *))f;
    return (function)faulty_submit;
}

function vkGetInstanceProcAddr(void *i, const char *name) {
    function f;
    if (instance == NULL)
        instance = (function (*)(void *, const char *))loader("vkGetInstanceProcAddr");
    f = instance(i, name);
    if (f == NULL || strcmp(name, "vkGetDeviceProcAddr") != 0) return f;
    device = (function (*)(void *, const char *))f;
    return (function)faulty_device;
}
