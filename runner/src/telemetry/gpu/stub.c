/* A stand-in for libnvidia-ml.so.1 with four GPUs: one that tells all, one that tells no utilisation, one that is lost
 * after its first sample, and one without a UUID. The compiler's -D set what else a host can be: without a driver
 * (NO_DRIVER), without a GPU (NO_GPU), with a broken driver (BROKEN). */
#include <string.h>

enum { OK = 0, INVALID = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, DRIVER_NOT_LOADED = 9, LOST = 15, MISMATCH = 18 };
enum { GPUS = 4 };

typedef struct { unsigned gpu, memory; } Utilization;
typedef struct { unsigned version; unsigned long long total, reserved, free, used; } Memory2;

static const char *UUIDS[GPUS] = {"GPU-aaaa-1", "GPU-aaaa-2", "GPU-bbbb-3", ""};
static int handles[GPUS];
static int asked;

static int number(void *device) { return (int)((int *)device - handles); }

int nvmlInit_v2(void) {
#ifdef NO_DRIVER
    return DRIVER_NOT_LOADED;
#endif
#ifdef BROKEN
    return MISMATCH;
#endif
    asked = 0;
    return OK;
}

int nvmlShutdown(void) { return OK; }

int nvmlSystemGetDriverVersion(char *text, unsigned length) {
    strncpy(text, "550.54.15", length);
    return OK;
}

int nvmlDeviceGetCount_v2(unsigned *count) {
#ifdef NO_GPU
    *count = 0;
#else
    *count = GPUS;
#endif
    return OK;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) {
    if (index >= GPUS) return INVALID;
    *device = &handles[index];
    return OK;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, void **device) {
    for (int i = 0; i < GPUS; i++)
        if (!strcmp(uuid, UUIDS[i])) {
            *device = &handles[i];
            return OK;
        }
    return NOT_FOUND;
}

int nvmlDeviceGetUUID(void *device, char *text, unsigned length) {
    if (number(device) == 3) return NOT_SUPPORTED;
    strncpy(text, UUIDS[number(device)], length);
    return OK;
}

int nvmlDeviceGetName(void *device, char *text, unsigned length) {
    strncpy(text, number(device) == 3 ? "NVIDIA L20" : "NVIDIA A10", length);
    return OK;
}

int nvmlDeviceGetUtilizationRates(void *device, Utilization *rates) {
    if (number(device) == 1) return NOT_SUPPORTED;
    if (number(device) == 2 && asked++ > 0) return LOST;
    rates->gpu = number(device) == 0 ? 87 : 0;
    rates->memory = 40;
    return OK;
}

int nvmlDeviceGetMemoryInfo_v2(void *device, Memory2 *memory) {
    if (number(device) == 2 && asked > 1) return LOST;
    memory->total = 23028ull << 20;
    memory->reserved = 300ull << 20;
    memory->used = 1000ull << 20;
    memory->free = memory->total - memory->reserved - memory->used;
    return OK;
}
