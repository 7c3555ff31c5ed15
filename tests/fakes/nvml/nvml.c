/* Answers as libnvidia-ml.so.1, from a scenario file, so that the shipped binding runs whole against it.

   The file, named by FAKE_NVML and read again at every nvmlDeviceGetCount_v2, has a key and a value a line:

     order 0 1 3                          the devices that are listed, by their own numbers
     0.nvmlDeviceGetPowerUsage 300000     what a function says of device 0; of every device: "*" for the number
     *.nvmlDeviceGetClockInfo.1 1980      arguments follow, where the answer depends on them
     0.field.161.5 7                      a field value, with its scope or without
     0.gpm.2 55.5                         a GPM metric between two samples
     0.processes 4711:1024 4712:2048      process ids and bytes
     0.mig 100 101                        numbers of the devices that are its MIG instances
     -1.events 0:79 1:94                  XIDs of devices, each told once, in this order, as events; at the end of them "!15" is an error
     lock 1                               one lock for all calls, held by one that hangs

   A value "!15" is NVML's error 15; "hang" never returns, "until PATH" not before that file is there. What is not in the file is not supported (3).
   The layouts are those of nvml.h, as the binding declares them. */

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OK = 0, UNINITIALIZED = 1, INVALID = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, SHORT = 7, NO_DRIVER = 9, TIMEOUT = 10 };
enum { DEVICES = 256, LINES = 8192 };

typedef unsigned int uint;
typedef unsigned long long ull;
typedef struct { char *key, *value; } Line;
typedef struct { int count; Line line[LINES]; } Table;
typedef struct { int number; } Device;
typedef struct { int number; } Sample;

static Table *table;
static Device devices[DEVICES];
static int started;
static pthread_mutex_t one_for_all = PTHREAD_MUTEX_INITIALIZER;

static int compare(const void *a, const void *b) { return strcmp(((const Line *)a)->key, ((const Line *)b)->key); }

static void load(void) {
    const char *path = getenv("FAKE_NVML");
    FILE *file = path ? fopen(path, "r") : NULL;
    if (!file) { table = NULL; return; }
    Table *fresh = calloc(1, sizeof *fresh); /* the one before is left to calls that are under way */
    char text[65536];
    while (fgets(text, sizeof text, file) && fresh->count < LINES) {
        text[strcspn(text, "\n")] = 0;
        char *blank = strchr(text, ' ');
        if (!blank || text[0] == '#') continue;
        *blank = 0;
        fresh->line[fresh->count].key = strdup(text);
        fresh->line[fresh->count++].value = strdup(blank + 1);
    }
    fclose(file);
    qsort(fresh->line, fresh->count, sizeof(Line), compare);
    table = fresh;
}

static const char *look(const char *key) {
    Line wanted = {(char *)key, NULL};
    Line *found = table ? bsearch(&wanted, table->line, table->count, sizeof(Line), compare) : NULL;
    return found ? found->value : NULL;
}

/* What is said of `what` at device `number`; waits for ever, or gives an error in *code, where the scenario says so. */
static const char *say(int number, const char *what, int *code) {
    char key[256];
    int locked = look("lock") != NULL;
    if (locked) pthread_mutex_lock(&one_for_all);
    snprintf(key, sizeof key, "%d.%s", number, what);
    const char *value = look(key);
    if (!value) { snprintf(key, sizeof key, "*.%s", what); value = look(key); }
    if (value && !strcmp(value, "hang")) for (;;) pause();
    if (value && !strncmp(value, "until ", 6)) {
        while (access(value + 6, F_OK)) usleep(5000);
        value = NULL;
    }
    if (locked) pthread_mutex_unlock(&one_for_all);
    *code = !started ? UNINITIALIZED : !value ? NOT_SUPPORTED : value[0] == '!' ? atoi(value + 1) : OK;
    return *code == OK ? value : NULL;
}

static int number_of(const Device *device) { return device ? device->number : -1; }

static int text_of(const Device *device, const char *what, char *into, uint size) {
    int code;
    const char *value = say(number_of(device), what, &code);
    if (value) snprintf(into, size, "%s", value);
    return code;
}

static int numbers_of(const Device *device, const char *what, ull *into, int wanted) {
    int code;
    const char *value = say(number_of(device), what, &code);
    for (int n = 0; value && n < wanted; n++) {
        char *end;
        into[n] = strtoull(value, &end, 0);
        value = *end ? end + 1 : end;
    }
    return code;
}

static int uint_of(const Device *device, const char *what, uint *into) {
    ull value = 0;
    int code = numbers_of(device, what, &value, 1);
    if (code == OK) *into = (uint)value;
    return code;
}

static int uint_by(const Device *device, const char *what, uint argument, uint *into) {
    char key[128];
    snprintf(key, sizeof key, "%s.%u", what, argument);
    return uint_of(device, key, into);
}

int nvmlInitWithFlags(uint flags) {
    (void)flags;
    for (int n = 0; n < DEVICES; n++) devices[n].number = n;
    load();
    int code;
    started = 1;
    say(-1, "nvmlInit", &code);
    if (code == NOT_SUPPORTED) code = table ? OK : NO_DRIVER;
    started = code == OK;
    return code;
}

int nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
int nvmlShutdown(void) { started = 0; return OK; }
const char *nvmlErrorString(int code) { (void)code; return "an error"; }

static int ordered(uint index, uint *number, uint *count) {
    const char *order = look("order");
    *count = 0;
    for (const char *at = order; at && *at;) {
        char *end;
        uint one = (uint)strtoul(at, &end, 10);
        if (end == at) break;
        if ((*count)++ == index) *number = one;
        at = end;
    }
    return index < *count;
}

int nvmlDeviceGetCount_v2(uint *count) {
    uint number;
    load();
    int code;
    say(-1, "nvmlDeviceGetCount_v2", &code);
    if (code != NOT_SUPPORTED) return code;
    ordered(0, &number, count);
    return OK;
}

int nvmlDeviceGetHandleByIndex_v2(uint index, Device **device) {
    uint number = 0, count;
    int code;
    if (!ordered(index, &number, &count)) return INVALID;
    say((int)number, "nvmlDeviceGetHandleByIndex_v2", &code);
    if (code != NOT_SUPPORTED) return code;
    *device = &devices[number];
    return OK;
}

int nvmlSystemGetDriverVersion(char *into, uint size) { Device none = {-1}; return text_of(&none, "nvmlSystemGetDriverVersion", into, size); }

#define TEXT(name) int name(Device *d, char *into, uint size) { return text_of(d, #name, into, size); }
#define UINT(name) int name(Device *d, uint *into) { return uint_of(d, #name, into); }
#define UINT_BY(name) int name(Device *d, uint argument, uint *into) { return uint_by(d, #name, argument, into); }

TEXT(nvmlDeviceGetUUID)
TEXT(nvmlDeviceGetName)
TEXT(nvmlDeviceGetSerial)
TEXT(nvmlDeviceGetVbiosVersion)
UINT(nvmlDeviceGetFanSpeed)
UINT(nvmlDeviceGetPowerUsage)
UINT(nvmlDeviceGetEnforcedPowerLimit)
UINT(nvmlDeviceGetPerformanceState)
UINT(nvmlDeviceGetCurrPcieLinkWidth)
UINT(nvmlDeviceGetMaxPcieLinkWidth)
UINT(nvmlDeviceGetCurrPcieLinkGeneration)
UINT(nvmlDeviceGetMaxPcieLinkGeneration)
UINT(nvmlDeviceGetPcieReplayCounter)
UINT(nvmlDeviceGetGpuInstanceId)
UINT(nvmlDeviceGetComputeInstanceId)
UINT_BY(nvmlDeviceGetTemperature)
UINT_BY(nvmlDeviceGetTemperatureThreshold)
UINT_BY(nvmlDeviceGetClockInfo)
UINT_BY(nvmlDeviceGetMaxClockInfo)
UINT_BY(nvmlDeviceGetNvLinkState)

int nvmlDeviceGetTotalEnergyConsumption(Device *d, ull *into) { return numbers_of(d, __func__, into, 1); }
int nvmlDeviceGetCurrentClocksEventReasons(Device *d, ull *into) { return numbers_of(d, __func__, into, 1); }
int nvmlDeviceGetCurrentClocksThrottleReasons(Device *d, ull *into) { return numbers_of(d, __func__, into, 1); }

typedef struct { char legacy[16]; uint domain, bus, device, id, subsystem; char address[32]; } Place;

int nvmlDeviceGetPciInfo_v3(Device *d, Place *into) {
    return text_of(d, __func__, into->address, sizeof into->address);
}

int nvmlDeviceGetMemoryInfo(Device *d, ull *total_free_used) { return numbers_of(d, __func__, total_free_used, 3); }

typedef struct { uint version; ull total, reserved, free, used; } Memory;

int nvmlDeviceGetMemoryInfo_v2(Device *d, Memory *into) {
    return into->version == 0x02000028 ? numbers_of(d, __func__, &into->total, 4) : 25;
}

int nvmlDeviceGetUtilizationRates(Device *d, uint *gpu_memory) {
    ull values[2];
    int code = numbers_of(d, __func__, values, 2);
    for (int n = 0; code == OK && n < 2; n++) gpu_memory[n] = (uint)values[n];
    return code;
}

int nvmlDeviceGetEncoderUtilization(Device *d, uint *share, uint *period) { *period = 167000; return uint_of(d, __func__, share); }
int nvmlDeviceGetDecoderUtilization(Device *d, uint *share, uint *period) { *period = 167000; return uint_of(d, __func__, share); }

int nvmlDeviceGetTotalEccErrors(Device *d, uint type, uint counter, ull *into) {
    char key[96];
    snprintf(key, sizeof key, "%s.%u.%u", __func__, type, counter);
    return numbers_of(d, key, into, 1);
}

int nvmlDeviceGetMemoryErrorCounter(Device *d, uint type, uint counter, uint location, ull *into) {
    char key[96];
    snprintf(key, sizeof key, "%s.%u.%u.%u", __func__, type, counter, location);
    return numbers_of(d, key, into, 1);
}

int nvmlDeviceGetNvLinkErrorCounter(Device *d, uint link, uint counter, ull *into) {
    char key[96];
    snprintf(key, sizeof key, "%s.%u.%u", __func__, link, counter);
    return numbers_of(d, key, into, 1);
}

int nvmlDeviceGetRemappedRows(Device *d, uint *corrected, uint *uncorrected, uint *pending, uint *failed) {
    ull v[4];
    int code = numbers_of(d, __func__, v, 4);
    if (code == OK) *corrected = (uint)v[0], *uncorrected = (uint)v[1], *pending = (uint)v[2], *failed = (uint)v[3];
    return code;
}

int nvmlDeviceGetRowRemapperHistogram(Device *d, uint *max_high_partial_low_none) {
    ull v[5];
    int code = numbers_of(d, __func__, v, 5);
    for (int n = 0; code == OK && n < 5; n++) max_high_partial_low_none[n] = (uint)v[n];
    return code;
}

typedef struct { uint version; unsigned char cluster[16]; uint status, clique, state, health; } Fabric;

int nvmlDeviceGetGpuFabricInfoV(Device *d, Fabric *into) {
    ull v[3]; /* state, status, health mask */
    int code = numbers_of(d, __func__, v, 3);
    if (code == OK) into->state = (uint)v[0], into->status = (uint)v[1], into->health = (uint)v[2];
    return code;
}

int nvmlDeviceGetMigMode(Device *d, uint *now, uint *pending) { *pending = 0; return uint_of(d, __func__, now); }

static int mig(Device *d, uint index, uint *number, uint *count) {
    ull v[8];
    int code;
    const char *value = say(number_of(d), "mig", &code);
    *count = 0;
    for (char *end; value && *value && *count < 8; value = *end ? end + 1 : end) v[(*count)++] = strtoull(value, &end, 10);
    if (index >= *count) return NOT_FOUND;
    *number = (uint)v[index];
    return OK;
}

int nvmlDeviceGetMaxMigDeviceCount(Device *d, uint *count) { uint number; mig(d, 0, &number, count); *count = *count ? 7 : 0; return OK; }

int nvmlDeviceGetMigDeviceHandleByIndex(Device *d, uint index, Device **device) {
    uint number, count;
    int code = mig(d, index, &number, &count);
    if (code == OK) *device = &devices[number % DEVICES];
    return code;
}

typedef struct { uint pid; ull memory; uint gpu_instance, compute_instance; } Process;

int nvmlDeviceGetComputeRunningProcesses_v3(Device *d, uint *count, Process *into) {
    int code;
    const char *value = say(number_of(d), "processes", &code);
    uint room = *count, n = 0;
    for (char *end; value && *value; n++) {
        uint pid = (uint)strtoul(value, &end, 10);
        ull memory = strtoull(*end ? end + 1 : end, &end, 10);
        if (into && n < room) into[n] = (Process){pid, memory, 0xFFFFFFFF, 0xFFFFFFFF};
        value = *end ? end + 1 : end;
    }
    *count = n;
    return code != OK ? code : n > room ? SHORT : OK;
}

typedef struct { uint id, scope; long long at, latency; uint type, code; union { double d; ull u; } value; } Field;

int nvmlDeviceGetFieldValues(Device *d, int count, Field *fields) {
    int code;
    say(number_of(d), __func__, &code);
    if (code != NOT_SUPPORTED) return code;
    for (int n = 0; n < count; n++) {
        char key[64];
        ull value = 0;
        snprintf(key, sizeof key, "field.%u.%u", fields[n].id, fields[n].scope);
        code = numbers_of(d, key, &value, 1);
        if (code == NOT_SUPPORTED) {
            snprintf(key, sizeof key, "field.%u", fields[n].id);
            code = numbers_of(d, key, &value, 1);
        }
        fields[n].code = (uint)code;
        fields[n].type = 3;
        fields[n].value.u = value;
    }
    return OK;
}

typedef struct { uint id, code; double value; const char *names[3]; } Metric;

typedef struct { uint version, supported; } Support;
typedef struct { uint version, count; Sample *before, *after; Metric metrics[]; } Wanted;

int nvmlGpmQueryDeviceSupport(Device *d, Support *into) { return uint_of(d, __func__, &into->supported); }
int nvmlGpmSampleAlloc(Sample **into) { *into = calloc(1, sizeof **into); return OK; }
int nvmlGpmSampleFree(Sample *sample) { free(sample); return OK; }

int nvmlGpmSampleGet(Device *d, Sample *sample) {
    int code;
    say(number_of(d), __func__, &code);
    sample->number = number_of(d);
    return code == NOT_SUPPORTED ? OK : code;
}

int nvmlGpmMetricsGet(Wanted *wanted) {
    if (wanted->before == wanted->after) return INVALID;
    for (uint n = 0; n < wanted->count; n++) {
        char key[64];
        int code;
        snprintf(key, sizeof key, "gpm.%u", wanted->metrics[n].id);
        const char *value = say(wanted->after->number, key, &code);
        wanted->metrics[n].code = (uint)code;
        if (value) wanted->metrics[n].value = atof(value);
    }
    return OK;
}

typedef struct { Device *device; ull type, data; uint gpu_instance, compute_instance; } Event;

int nvmlEventSetCreate(int **set) { *set = calloc(1, sizeof **set); return OK; } /* how many were told */
int nvmlEventSetFree(int *set) { free(set); return OK; }
int nvmlDeviceGetSupportedEventTypes(Device *d, ull *into) { return numbers_of(d, __func__, into, 1); }
int nvmlDeviceRegisterEvents(Device *d, ull types, int *set) { (void)d; (void)types; (void)set; return OK; }

int nvmlEventSetWait_v2(int *set, Event *into, uint milliseconds) {
    for (uint waited = 0; waited <= milliseconds; waited += 10, usleep(10000)) {
        int code, n = 0;
        load();
        const char *at = say(-1, "events", &code);
        for (char *end; at && *at; at = *end ? end + 1 : end, n++) {
            if (n < *set) { end = (char *)at + strcspn(at, " "); continue; }
            ++*set;
            if (*at == '!') return atoi(at + 1);
            uint number = (uint)strtoul(at, &end, 10);
            *into = (Event){&devices[number % DEVICES], 8, strtoull(end + 1, &end, 10), 0, 0};
            return OK;
        }
    }
    return TIMEOUT;
}
