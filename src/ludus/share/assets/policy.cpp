// Runs a policy: the list of operations that `ludus.share.policy` makes of its network, one observation at a time.
//
// An operand is a place in one of three areas of 32-bit words: weights, scratch memory, and what is remembered of a
// seat. The four highest bits name the area, the others the word. The formulas are those of `ludus.nn`.

#include <wasm_simd128.h>

#include "program.h"

enum Operation { LINEAR, ACTIVATE, NORMALIZE, LAYER_NORM, ADD, COPY, SCALE, LSTM, ATTEND, POOL, ADVANCE, FILM, SOFTMAX, MIRROR };
enum Activation { TANH, RELU, ELU, GELU, SILU };
enum Format { FLOAT32, BFLOAT16, INT8 };
enum Space { MULTI_BINARY, CATEGORICAL, BOX };

static float* areas[3];

static float* at(int32_t operand) { return areas[(uint32_t)operand >> 28] + (operand & 0x0FFFFFFF); }
static float as_float(int32_t bits) { float value; __builtin_memcpy(&value, &bits, 4); return value; }

// e^x in double precision: x = k ln 2 + r, and a Taylor polynomial for |r| <= ln 2 / 2, right to 1e-13.
static double exponential(double x) {
    if (x < -700.0) return 0.0;
    if (x > 700.0) x = 700.0;
    const double k = __builtin_floor(x * 1.4426950408889634 + 0.5);
    const double r = (x - k * 0.693147180369123816490) - k * 1.90821492927058770002e-10;
    double sum = 1.0;
    for (int i = 12; i > 0; --i) sum = 1.0 + sum * r / i;
    const int64_t bits = (int64_t)(k + 1023.0) << 52;
    double power;
    __builtin_memcpy(&power, &bits, 8);
    return sum * power;
}

static float sigmoid(float x) { return (float)(1.0 / (1.0 + exponential(-(double)x))); }

static float hyperbolic_tangent(float x) {
    if (x > 20.0f) return 1.0f;
    if (x < -20.0f) return -1.0f;
    const double power = exponential(2.0 * x);
    return (float)((power - 1.0) / (power + 1.0));
}

// erf x: its series for small x, a continued fraction of erfc for others; right to 1e-12.
static double error_function(double x) {
    const double size = x < 0 ? -x : x;
    if (size > 6.0) return x < 0 ? -1.0 : 1.0;
    if (size < 2.5) {
        double term = x, sum = x;
        for (int n = 1; n < 60; ++n) {
            term *= -x * x / n;
            sum += term / (2 * n + 1);
        }
        return 1.1283791670955126 * sum;
    }
    double fraction = size;
    for (int n = 60; n > 0; --n) fraction = size + 0.5 * n / fraction;
    const double rest = exponential(-size * size) / (1.7724538509055160 * fraction);
    return x < 0 ? rest - 1.0 : 1.0 - rest;
}

static float activate(float x, int32_t kind) {
    switch (kind) {
        case TANH: return hyperbolic_tangent(x);
        case RELU: return x > 0.0f ? x : 0.0f;
        case ELU: return x > 0.0f ? x : (float)(exponential(x) - 1.0);
        case GELU: return (float)(0.5 * x * (1.0 + error_function(x * 0.70710678118654752)));
        default: return x * sigmoid(x);
    }
}

static float sum_of(v128_t v) {
    return (wasm_f32x4_extract_lane(v, 0) + wasm_f32x4_extract_lane(v, 1)) + (wasm_f32x4_extract_lane(v, 2) + wasm_f32x4_extract_lane(v, 3));
}

static float dot_float(const float* row, const float* input, int32_t count) {
    v128_t sum = wasm_f32x4_splat(0);
    int32_t i = 0;
    for (; i + 4 <= count; i += 4) sum = wasm_f32x4_add(sum, wasm_f32x4_mul(wasm_v128_load(row + i), wasm_v128_load(input + i)));
    float total = sum_of(sum);
    for (; i < count; ++i) total += row[i] * input[i];
    return total;
}

// Eight neighbouring weights as floats, and a single one. A bfloat16 is the upper half of a float.
struct Eight { v128_t low, high; };

struct Float32 {
    typedef float stored;
    static Eight load(const float* from) { return {wasm_v128_load(from), wasm_v128_load(from + 4)}; }
    static float one(float value) { return value; }
};

struct Bfloat16 {
    typedef unsigned short stored;
    static Eight load(const unsigned short* from) {
        const v128_t halves = wasm_v128_load(from);
        return {wasm_i32x4_shl(wasm_u32x4_extend_low_u16x8(halves), 16), wasm_i32x4_shl(wasm_u32x4_extend_high_u16x8(halves), 16)};
    }
    static float one(unsigned short value) { return as_float((int32_t)((uint32_t)value << 16)); }
};

struct Int8 {
    typedef signed char stored;
    static Eight load(const signed char* from) {
        const v128_t wide = wasm_i16x8_load8x8(from);
        return {wasm_f32x4_convert_i32x4(wasm_i32x4_extend_low_i16x8(wide)), wasm_f32x4_convert_i32x4(wasm_i32x4_extend_high_i16x8(wide))};
    }
    static float one(signed char value) { return (float)value; }
};

// Products of ROWS neighbouring rows with an input, which is loaded once for all of them.
template <typename Form, int ROWS>
static void products(const typename Form::stored* weight, const float* input, int32_t columns, float* sums) {
    v128_t total[ROWS];
    for (int row = 0; row < ROWS; ++row) total[row] = wasm_f32x4_splat(0);
    int32_t i = 0;
    for (; i + 8 <= columns; i += 8) {
        const v128_t low = wasm_v128_load(input + i), high = wasm_v128_load(input + i + 4);
        for (int row = 0; row < ROWS; ++row) {
            const Eight part = Form::load(weight + row * columns + i);
            total[row] = wasm_f32x4_add(total[row], wasm_f32x4_add(wasm_f32x4_mul(part.low, low), wasm_f32x4_mul(part.high, high)));
        }
    }
    for (int row = 0; row < ROWS; ++row) {
        sums[row] = sum_of(total[row]);
        for (int32_t k = i; k < columns; ++k) sums[row] += Form::one(weight[row * columns + k]) * input[k];
    }
}

// Operands: into, from, weight, scales, bias or -1, rows, columns, format, adds.
template <typename Form>
static void multiply(const int32_t* o) {
    float* into = at(o[0]);
    const float* from = at(o[1]);
    const typename Form::stored* weight = reinterpret_cast<const typename Form::stored*>(at(o[2]));
    const float *scales = o[7] == INT8 ? at(o[3]) : nullptr, *bias = o[4] >= 0 ? at(o[4]) : nullptr;
    const int32_t rows = o[5], columns = o[6];
    for (int32_t row = 0; row < rows; row += 4) {
        const int32_t count = rows - row < 4 ? rows - row : 4;
        float sums[4];
        if (count == 4) products<Form, 4>(weight + row * columns, from, columns, sums);
        else for (int32_t k = 0; k < count; ++k) products<Form, 1>(weight + (row + k) * columns, from, columns, sums + k);
        for (int32_t k = 0; k < count; ++k) {
            const float sum = (scales ? sums[k] * scales[row + k] : sums[k]) + (bias ? bias[row + k] : 0.0f);
            into[row + k] = o[8] ? into[row + k] + sum : sum;
        }
    }
}

// into = weight @ from + bias (+ into).
static void linear(const int32_t* o) {
    if (o[7] == FLOAT32) multiply<Float32>(o);
    else if (o[7] == BFLOAT16) multiply<Bfloat16>(o);
    else multiply<Int8>(o);
}

static void layer_norm(float* into, const float* from, int32_t count, const float* weight, const float* bias) {
    double mean = 0, squares = 0;
    for (int32_t i = 0; i < count; ++i) mean += from[i];
    mean /= count;
    for (int32_t i = 0; i < count; ++i) squares += (from[i] - mean) * (from[i] - mean);
    const double scale = 1.0 / __builtin_sqrt(squares / count + 1e-5);
    for (int32_t i = 0; i < count; ++i) into[i] = (float)((from[i] - mean) * scale) * weight[i] + bias[i];
}

// Gates in the order input, forget, output, candidate; see ludus.nn.recurrent.
static void lstm(float* gates, float* hidden, float* cell, int32_t size) {
    for (int32_t i = 0; i < size; ++i) {
        cell[i] = sigmoid(gates[size + i]) * cell[i] + sigmoid(gates[i]) * hyperbolic_tangent(gates[3 * size + i]);
        hidden[i] = sigmoid(gates[2 * size + i]) * hyperbolic_tangent(cell[i]);
    }
}

static void softmax(float* values, int32_t count) {
    float top = values[0];
    for (int32_t i = 1; i < count; ++i) top = values[i] > top ? values[i] : top;
    double sum = 0;
    for (int32_t i = 0; i < count; ++i) {
        values[i] = (float)exponential((double)values[i] - top);
        sum += values[i];
    }
    for (int32_t i = 0; i < count; ++i) values[i] = (float)(values[i] / sum);
}

// A ring holds the last frames; a slot counts if it is of this episode. `seen` frames of that came before this one.
static bool is_seen(int32_t slot, int32_t newest, int32_t slots, int32_t seen) {
    return (newest - slot + slots) % slots <= seen;
}

// Rotate pairs of features by whole numbers of steps of a full turn; see ludus.nn.transformer.Rotary.
static void rotate(float* features, int32_t pairs, const int32_t* turns, int32_t position, const float* cosines, int32_t period) {
    for (int32_t i = 0; i < pairs; ++i) {
        const int32_t step = (int32_t)((int64_t)position * turns[i] % period);
        const float c = cosines[step], s = cosines[(step + period - period / 4) % period];
        const float first = features[i], second = features[pairs + i];
        features[i] = first * c - second * s;
        features[pairs + i] = first * s + second * c;
    }
}

// Operands: into, queries with keys and values, ring of keys, ring of values, heads, head size, slots, turns, cosines,
// period, counter.
static void attend(const int32_t* o) {
    float *into = at(o[0]), *projected = at(o[1]), *keys = at(o[2]), *values = at(o[3]), *cosines = at(o[8]);
    const int32_t heads = o[4], size = o[5], slots = o[6], period = o[9], width = heads * size;
    const int32_t *turns = reinterpret_cast<int32_t*>(at(o[7])), *counter = reinterpret_cast<int32_t*>(at(o[10]));
    const int32_t newest = counter[0] % slots;
    float scores[512];
    for (int32_t head = 0; head < heads; ++head) {
        float *query = projected + head * size, *key = projected + width + head * size;
        rotate(query, size / 2, turns, counter[0] % period, cosines, period);
        rotate(key, size / 2, turns, counter[0] % period, cosines, period);
        float *head_keys = keys + head * slots * size, *head_values = values + head * slots * size;
        for (int32_t i = 0; i < size; ++i) {
            head_keys[newest * size + i] = key[i];
            head_values[newest * size + i] = projected[2 * width + head * size + i];
        }
        int32_t count = 0;
        for (int32_t slot = 0; slot < slots; ++slot) {
            if (is_seen(slot, newest, slots, counter[1])) scores[count++] = dot_float(head_keys + slot * size, query, size) / __builtin_sqrtf((float)size);
        }
        softmax(scores, count);
        for (int32_t i = 0; i < size; ++i) into[head * size + i] = 0.0f;
        count = 0;
        for (int32_t slot = 0; slot < slots; ++slot) {
            if (!is_seen(slot, newest, slots, counter[1])) continue;
            const float share = scores[count++];
            for (int32_t i = 0; i < size; ++i) into[head * size + i] += share * head_values[slot * size + i];
        }
    }
}

// Operands: into, newest output, its score, ring of outputs, ring of scores, width, slots, counter.
static void pool(const int32_t* o) {
    float *into = at(o[0]), *outputs = at(o[3]), *kept = at(o[4]);
    const int32_t width = o[5], slots = o[6], *counter = reinterpret_cast<int32_t*>(at(o[7]));
    const int32_t newest = counter[0] % slots;
    __builtin_memcpy(outputs + newest * width, at(o[1]), width * 4);
    kept[newest] = at(o[2])[0];
    float scores[512];
    int32_t count = 0;
    for (int32_t slot = 0; slot < slots; ++slot) if (is_seen(slot, newest, slots, counter[1])) scores[count++] = kept[slot];
    softmax(scores, count);
    for (int32_t i = 0; i < width; ++i) into[i] = 0.0f;
    count = 0;
    for (int32_t slot = 0; slot < slots; ++slot) {
        if (!is_seen(slot, newest, slots, counter[1])) continue;
        const float share = scores[count++];
        for (int32_t i = 0; i < width; ++i) into[i] += share * outputs[slot * width + i];
    }
}

// Operands: counter, inputs, how many mark events, which. Where some do, frames in which none begins leave no trace.
static void advance(const int32_t* o) {
    int32_t *counter = reinterpret_cast<int32_t*>(at(o[0])), *events = reinterpret_cast<int32_t*>(at(o[3]));
    const float* inputs = at(o[1]);
    int32_t goes_on = 0, begins = 1;
    if (o[2] > 0) {
        for (int32_t i = 0; i < o[2]; ++i) goes_on |= inputs[events[i]] > 0.0f;
        begins = goes_on && !counter[2];
    }
    counter[0] += begins;
    counter[1] += begins;
    counter[2] = goes_on;
}

static void simple(int32_t operation, const int32_t* o) {
    float *into = at(o[0]), *from = at(o[1]);
    switch (operation) {
        case ACTIVATE: for (int32_t i = 0; i < o[1]; ++i) into[i] = activate(into[i], o[2]); break;
        case SCALE: for (int32_t i = 0; i < o[1]; ++i) into[i] *= as_float(o[2]); break;
        case SOFTMAX: softmax(into, o[1]); break;
        case ADD: for (int32_t i = 0; i < o[2]; ++i) into[i] += from[i]; break;
        case COPY: for (int32_t i = 0; i < o[2]; ++i) into[i] = from[i]; break;
        case NORMALIZE: {
            const float *shift = at(o[3]), *scale = at(o[4]), clip = as_float(o[5]);
            for (int32_t i = 0; i < o[2]; ++i) {
                const float x = (from[i] - shift[i]) * scale[i];
                into[i] = x < -clip ? -clip : x > clip ? clip : x;
            }
        } break;
        case FILM: for (int32_t i = 0; i < o[2]; ++i) into[i] = (into[i] + from[o[2] + i]) + into[i] * from[i]; break;
        // Operands: into, from, count, sources, signs, side: below 0, what is seen is turned.
        case MIRROR: {
            const int32_t* source = reinterpret_cast<int32_t*>(at(o[3]));
            const float *sign = at(o[4]), side = at(o[5])[0];
            for (int32_t i = 0; i < o[2]; ++i) into[i] = side < 0.0f ? from[source[i]] * sign[i] : from[i];
        } break;
        default: __builtin_trap();
    }
}

extern "C" {

// Run a list of operations: each is its number, the count of its operands, and these.
EXPORT void policy_run(const int32_t* code, uint32_t words, float* weights, float* scratch, float* memory) {
    areas[0] = weights;
    areas[1] = scratch;
    areas[2] = memory;
    for (const int32_t* end = code + words; code < end; code += 2 + code[1]) {
        const int32_t* o = code + 2;
        switch (code[0]) {
            case LINEAR: linear(o); break;
            case LAYER_NORM: layer_norm(at(o[0]), at(o[1]), o[2], at(o[3]), at(o[4])); break;
            case LSTM: lstm(at(o[0]), at(o[1]), at(o[2]), o[3]); break;
            case ATTEND: attend(o); break;
            case POOL: pool(o); break;
            case ADVANCE: advance(o); break;
            default: simple(code[0], o);
        }
    }
}

void* actions();

// Write the action of a seat: the most likely one, or by noise, numbers in [0, 1) or, for continuous actions, standard
// normal ones. `bounds` are the lowest and then the highest values of continuous actions.
EXPORT void policy_choose(const float* parameters, int32_t space, uint32_t seat, const float* noise, const float* bounds) {
    action_t* chosen = static_cast<action_t*>(actions()) + seat * ACTION_SIZE;
    for (uint32_t i = 0; i < ACTION_SIZE; ++i) {
        if (space == MULTI_BINARY) {
            chosen[i] = noise ? noise[i] < sigmoid(parameters[i]) : parameters[i] > 0.0f;
        } else if (space == BOX) {
            float x = parameters[i] + (noise ? (float)exponential(parameters[ACTION_SIZE + i]) * noise[i] : 0.0f);
            x = x < bounds[i] ? bounds[i] : x > bounds[ACTION_SIZE + i] ? bounds[ACTION_SIZE + i] : x;
            static_cast<float*>(actions())[seat * ACTION_SIZE + i] = x;
        } else {
            const int32_t count = ACTION_COUNTS[i];
            int32_t best = 0;
            if (noise) {
                double sum = 0, below = 0;
                float top = parameters[0];
                for (int32_t k = 1; k < count; ++k) top = parameters[k] > top ? parameters[k] : top;
                for (int32_t k = 0; k < count; ++k) sum += exponential((double)parameters[k] - top);
                for (; best < count - 1; ++best) {
                    below += exponential((double)parameters[best] - top) / sum;
                    if (below > noise[i]) break;
                }
            } else {
                for (int32_t k = 1; k < count; ++k) if (parameters[k] > parameters[best]) best = k;
            }
            chosen[i] = (action_t)best;
            parameters += count;
        }
    }
}
}
