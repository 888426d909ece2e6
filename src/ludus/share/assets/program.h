// What `engine.cpp` knows of a captured program; `wasm.py` appends the numbers of the world.
#pragma once
typedef unsigned int uint32_t;
typedef int int32_t;
typedef unsigned long long uint64_t;
typedef long long int64_t;
typedef unsigned long size_t;
#define EXPORT __attribute__((visibility("default")))
struct Buffer { unsigned char* data; uint32_t bytes; const unsigned char* image; bool is_reset; };
struct SeedWord { uint32_t buffer; uint32_t offset; };
extern const Buffer BUFFERS[];
extern "C" void run_step();
extern "C" void run_restart();
extern "C" void run_observe();
extern "C" void run_act_bots();
