// The game in a web page: memory of the captured program, its operations, and what a page needs around them.
//
// `ludus.share.wasm` writes the tables that `program.h` declares and a function per kernel that launches it, and compiles
// all of it for wasm32 without a C library. Python's side of `hash` is `zlib.crc32`, that of `mix` is `ludus.core.random`.

#include "program.h"

extern "C" {

// What compilers call, and the few functions that kernels use; each is one instruction of WebAssembly.
void* memset(void* into, int value, size_t bytes) {
    unsigned char* target = static_cast<unsigned char*>(into);
    for (size_t i = 0; i < bytes; ++i) target[i] = static_cast<unsigned char>(value);
    return into;
}

void* memcpy(void* into, const void* from, size_t bytes) {
    unsigned char* target = static_cast<unsigned char*>(into);
    const unsigned char* source = static_cast<const unsigned char*>(from);
    for (size_t i = 0; i < bytes; ++i) target[i] = source[i];
    return into;
}

void* memmove(void* into, const void* from, size_t bytes) {
    if (into <= from) return memcpy(into, from, bytes);
    unsigned char* target = static_cast<unsigned char*>(into);
    const unsigned char* source = static_cast<const unsigned char*>(from);
    while (bytes--) target[bytes] = source[bytes];
    return into;
}

float sqrtf(float x) { return __builtin_sqrtf(x); }
float fabsf(float x) { return __builtin_fabsf(x); }
float floorf(float x) { return __builtin_floorf(x); }
float ceilf(float x) { return __builtin_ceilf(x); }
float truncf(float x) { return __builtin_truncf(x); }
float rintf(float x) { return __builtin_rintf(x); }
double sqrt(double x) { return __builtin_sqrt(x); }
double fabs(double x) { return __builtin_fabs(x); }
double floor(double x) { return __builtin_floor(x); }
double ceil(double x) { return __builtin_ceil(x); }
int abs(int x) { return x < 0 ? -x : x; }
int _wp_isnan(double x) { return x != x; }
int _wp_isinf(double x) { return x - x != 0.0 && x == x; }
int _wp_isfinite(double x) { return x - x == 0.0; }
void _wp_assert(const char*, const char*, unsigned) { __builtin_trap(); }

// Counter-based random numbers; see ludus.core.random.
static uint32_t mix(uint32_t h, uint32_t k) {
    h = (h ^ k) * 0x9E3779B1u;
    h = (h ^ (h >> 16)) * 0x85EBCA6Bu;
    h = (h ^ (h >> 13)) * 0xC2B2AE35u;
    return h ^ (h >> 16);
}

static uint32_t crc_table[256];

static uint32_t crc32(uint32_t crc, const unsigned char* data, uint32_t bytes) {
    crc = ~crc;
    for (uint32_t i = 0; i < bytes; ++i) crc = crc_table[(crc ^ data[i]) & 255] ^ (crc >> 8);
    return ~crc;
}

EXPORT void start() {
    for (uint32_t i = 0; i < 256; ++i) {
        uint32_t value = i;
        for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ (value & 1 ? 0xEDB88320u : 0);
        crc_table[i] = value;
    }
}

// Address of a buffer, in the order of the description.
EXPORT unsigned char* address(uint32_t buffer) { return BUFFERS[buffer].data; }

// Actions as pages and policies write them: 32-bit numbers where kernels read 64-bit ones.
#if ACTIONS_ARE_WIDE
static int32_t narrow_actions[ACTION_NUMBERS];
static int64_t* wide_actions() { return reinterpret_cast<int64_t*>(BUFFERS[ACTIONS].data); }
static void widen() { for (int i = 0; i < ACTION_NUMBERS; ++i) wide_actions()[i] = narrow_actions[i]; }
static void narrow() { for (int i = 0; i < ACTION_NUMBERS; ++i) narrow_actions[i] = (int32_t)wide_actions()[i]; }
EXPORT void* actions() { return narrow_actions; }
#else
static void widen() {}
static void narrow() {}
EXPORT void* actions() { return BUFFERS[ACTIONS].data; }
#endif

// Begin the first episode of a seed, as `env.reset(seed=...)` does.
EXPORT void reset(uint32_t low, uint32_t high) {
    for (uint32_t i = 0; i < BUFFER_COUNT; ++i) {
        if (!BUFFERS[i].is_reset) continue;
        if (BUFFERS[i].image) memcpy(BUFFERS[i].data, BUFFERS[i].image, BUFFERS[i].bytes);
        else memset(BUFFERS[i].data, 0, BUFFERS[i].bytes);
    }
    const uint32_t seed_hash = mix(low, high), halves[2] = {low, high};
    memcpy(BUFFERS[SEED].data, halves, 8);
    for (uint32_t i = 0; i < SEED_WORD_COUNT; ++i) {
        memcpy(BUFFERS[SEED_WORDS[i].buffer].data + SEED_WORDS[i].offset, &seed_hash, 4);
    }
    narrow();
    run_restart();
}

// Begin the next episode, as `env.reset()` does.
EXPORT void restart() {
    BUFFERS[CHOSEN].data[0] = 1;
    run_restart();
}

// Advance by one step with the present actions: 1 if the episode terminated, 2 if it was truncated. It starts anew.
EXPORT uint32_t step() {
    widen();
    run_step();
    return BUFFERS[TERMINATED].data[0] | BUFFERS[TRUNCATED].data[0] << 1;
}

EXPORT void observe() { run_observe(); }

// Let the scripted players of the buffer `assignment` write their actions.
EXPORT void act_bots() {
    widen();
    run_act_bots();
    narrow();
}

// CRC-32 of the state and of what is observed, continuing that of `before`; 0 begins.
EXPORT uint32_t hash(uint32_t before) {
    for (uint32_t i = 0; i < HASHED_COUNT; ++i) {
        before = crc32(before, BUFFERS[HASHED[i]].data, BUFFERS[HASHED[i]].bytes);
    }
    return before;
}

// Play frames of random actions that are held for a few frames, in all seats without a scripted player; return the
// hash over all frames.
EXPORT uint32_t play_random(uint32_t low, uint32_t high, uint32_t first, uint32_t frames, uint32_t before) {
    const uint32_t seed_hash = mix(low, high);
    for (uint32_t frame = first; frame < first + frames; ++frame) {
        const uint32_t block = mix(seed_hash, frame / RANDOM_HOLD);
        for (uint32_t seat = 0; seat < SEATS; ++seat) {
            const uint32_t row = mix(block, seat);
            for (uint32_t i = 0; i < ACTION_SIZE; ++i) {
                const uint32_t drawn = mix(row, i), place = seat * ACTION_SIZE + i;
                if (ACTION_COUNTS[i] == 0) {
                    static_cast<float*>(actions())[place] = (float)(drawn >> 8) * 0x1p-23f - 1.0f;
                } else {
                    static_cast<action_t*>(actions())[place] = (action_t)(((uint64_t)drawn * ACTION_COUNTS[i]) >> 32);
                }
            }
        }
        act_bots();
        step();
        before = hash(before);
    }
    return before;
}

extern unsigned char __heap_base;
static uint32_t heap_end = 0;

// Memory that is never given back, for policies.
EXPORT unsigned char* allocate(uint32_t bytes) {
    if (heap_end == 0) heap_end = reinterpret_cast<uint32_t>(&__heap_base);
    const uint32_t begin = (heap_end + 15) & ~15u;
    heap_end = begin + bytes;
    const uint32_t pages = __builtin_wasm_memory_size(0), wanted = (heap_end + 65535) >> 16;
    if (wanted > pages && __builtin_wasm_memory_grow(0, wanted - pages) == (size_t)-1) __builtin_trap();
    return reinterpret_cast<unsigned char*>(begin);
}
}
