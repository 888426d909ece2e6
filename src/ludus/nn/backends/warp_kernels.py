"""The compiled LSTM: C++ source and the Warp kernels that hold it, for the CPU; a Warp thread runs a block of rows.

Rows do not meet each other in a recurrence, so a block stays in the core's own cache from the first step to the last,
and several cores need not wait for each other within a sequence. Tables are those of `warp_lstm`. Products are sums
over two contiguous rows, so that neither operand is copied into another layout first: with the few rows of a minibatch
of sequences that copying is what makes library products slow (16 rows by 256 x 1,024: 8 GFLOP/s there, 33 here).

The C++ has the shape that Warp's native functions take: a list of statements.
"""

import warp as wp

VECTORS = r"""
typedef float vec __attribute__((vector_size(16), aligned(4)));
typedef int ivec __attribute__((vector_size(16), aligned(4)));
struct Vector {
    static vec all(float x) { return (vec){x, x, x, x}; }

    // Where x is not a number, so is the result: the clamps below would hide it.
    static vec or_nan(vec result, vec x) { return x == x ? result : x; }

    static vec fma(vec a, vec b, vec c) { return __builtin_elementwise_fma(a, b, c); }

    // exp(y) = 2^n (1 + q), q = exp(r) - 1 by its series for |r| < 0.35; |y| < 80. Gives q, and 2^n in scale.
    static vec split_exp(vec y, vec* scale) {
        const vec shifted = fma(y, all(1.44269504f), all(12583039.0f));  // 1.5 * 2^23 + 127: its low bits are n + 127
        const vec n = shifted - 12583039.0f;
        vec r = fma(n, all(-0.693145752f), y);
        r = fma(n, all(-1.42860677e-6f), r);
        vec q = fma(r, all(1.98412698e-4f), all(1.38888889e-3f));
        q = fma(q, r, all(8.33333333e-3f));
        q = fma(q, r, all(4.16666667e-2f));
        q = fma(q, r, all(1.66666667e-1f));
        q = fma(q, r, all(0.5f));
        *scale = (vec)((ivec)shifted << 23);
        return fma(q, r, all(1.0f)) * r;
    }

    // tanh(x) = e / (e + 2) with e = exp(2 x) - 1 = 2^n q + (2^n - 1): no cancellation near 0, relative error < 2e-7.
    static vec tanh4(vec x) {
        const vec held = __builtin_elementwise_min(__builtin_elementwise_max(x, all(-9.0f)), all(9.0f));
        vec scale;
        const vec q = split_exp(held + held, &scale);
        const vec e = fma(scale, q, scale - 1.0f);
        return or_nan(e / (e + 2.0f), x);
    }

    // sigmoid(x) = e / (e + 1) with e = exp(x).
    static vec sigmoid4(vec x) {
        const vec held = __builtin_elementwise_min(__builtin_elementwise_max(x, all(-80.0f)), all(80.0f));
        vec scale;
        const vec q = split_exp(held, &scale);
        const vec e = fma(scale, q, scale);
        return or_nan(e / (e + 1.0f), x);
    }
};
"""


PRODUCT = r"""
#if defined(__AVX512F__)
#define LUDUS_LANES 16
#define LUDUS_TALL 4
#elif defined(__AVX__)
#define LUDUS_LANES 8
#define LUDUS_TALL 2
#else
#define LUDUS_LANES 4
#define LUDUS_TALL 4
#endif
typedef float wide __attribute__((vector_size(4 * LUDUS_LANES), aligned(4)));
struct Product {
    static vec halves(wide x) {
#if LUDUS_LANES == 16
        typedef float half __attribute__((vector_size(32)));
        const half y = __builtin_shufflevector(x, x, 0, 1, 2, 3, 4, 5, 6, 7)
            + __builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15);
        return __builtin_shufflevector(y, y, 0, 1, 2, 3) + __builtin_shufflevector(y, y, 4, 5, 6, 7);
#elif LUDUS_LANES == 8
        return __builtin_shufflevector(x, x, 0, 1, 2, 3) + __builtin_shufflevector(x, x, 4, 5, 6, 7);
#else
        return x;
#endif
    }
    static vec pairs(vec x, vec y) {
        return __builtin_shufflevector(x, y, 0, 2, 4, 6) + __builtin_shufflevector(x, y, 1, 3, 5, 7);
    }

    // sums[i][j] = a[i] . b[j] for LUDUS_TALL rows of a and four of b, which all stay in registers. Rows of a past
    // the last one repeat it.
    static void tile(const float* a, int rows, const float* b, int depth, vec* sums) {
        const float* row[LUDUS_TALL];
        wide sum[LUDUS_TALL][4];
        #pragma clang loop unroll(full)
        for (int i = 0; i < LUDUS_TALL; ++i) {
            row[i] = a + (long long)(i < rows ? i : rows - 1) * depth;
            #pragma clang loop unroll(full)
            for (int j = 0; j < 4; ++j) sum[i][j] = (wide){0.0f};
        }
        for (int k = 0; k < depth; k += LUDUS_LANES) {
            wide right[4];
            #pragma clang loop unroll(full)
            for (int j = 0; j < 4; ++j) right[j] = *(const wide*)(b + j * depth + k);
            #pragma clang loop unroll(full)
            for (int i = 0; i < LUDUS_TALL; ++i) {
                const wide left = *(const wide*)(row[i] + k);
                #pragma clang loop unroll(full)
                for (int j = 0; j < 4; ++j) sum[i][j] = __builtin_elementwise_fma(left, right[j], sum[i][j]);
            }
        }
        #pragma clang loop unroll(full)
        for (int i = 0; i < LUDUS_TALL; ++i)
            sums[i] = pairs(pairs(halves(sum[i][0]), halves(sum[i][1])), pairs(halves(sum[i][2]), halves(sum[i][3])));
    }
};
"""

FORWARD = r"""
    const long long* table = (const long long*)job;
    const int steps = (int)table[0], all_rows = (int)table[1], size = (int)table[2], block_rows = (int)table[3];
    const float* keep = (const float*)table[5];
    const long long* network = table + 6 + block / table[4] * 8;
    const float* projected = (const float*)network[0];
    const float* weight = (const float*)network[1];
    const float* hidden = (const float*)network[2];
    const float* first_cell = (const float*)network[3];
    float* gates = (float*)network[4];
    float* hidden_before = (float*)network[5];
    float* cell_before = hidden_before + (long long)steps * all_rows * size;
    float* squashed = cell_before + (long long)steps * all_rows * size;
    float* outputs = (float*)network[6];
    float* cell = (float*)network[7];
    const int first = (int)(block % table[4]) * block_rows;
    const int rows = all_rows - first < block_rows ? all_rows - first : block_rows;
    float fresh[16 * 64];  // products of sixteen units: (rows, gates, units)

    for (int t = 0; t < steps; ++t) {
        const long long at = (long long)t * all_rows + first;
        const float* old_hidden = t == 0 ? hidden + (long long)first * size : outputs + (at - all_rows) * size;
        const float* old_cell = (t == 0 ? first_cell : cell) + (long long)first * size;
        float* given = hidden_before + at * size;
        for (int m = 0; m < rows; ++m) {
            const vec kept = Vector::all(keep[at + m]);
            for (int j = m * size; j < (m + 1) * size; j += 4) {
                *(vec*)(given + j) = *(const vec*)(old_hidden + j) * kept;
                *(vec*)(cell_before + at * size + j) = *(const vec*)(old_cell + j) * kept;
            }
        }
        // Sixteen units at a time: whole cache lines of everything that is read and written.
        for (int unit = 0; unit < size; unit += 16) {
            for (int column = 0; column < 64; column += 4) {
                const int j = column / 16 * size + unit + column % 16;
                for (int m = 0; m < rows; m += LUDUS_TALL) {
                    vec sums[LUDUS_TALL];
                    Product::tile(given + m * size, rows - m, weight + (long long)j * size, size, sums);
                    for (int i = 0; i < LUDUS_TALL; ++i) *(vec*)(fresh + (m + i) * 64 + column) = sums[i];
                }
            }
            for (int m = 0; m < rows; ++m)
                for (int j = 0; j < 16; j += 4) {
                    const float* sums = fresh + m * 64 + j;
                    const long long place = (at + m) * size + unit + j, gate = (at + m) * 4 * size + unit + j;
                    const float* input = projected + gate;
                    const vec input_gate = Vector::sigmoid4(*(const vec*)sums + *(const vec*)input);
                    const vec forget_gate = Vector::sigmoid4(*(const vec*)(sums + 16) + *(const vec*)(input + size));
                    const vec output_gate =
                        Vector::sigmoid4(*(const vec*)(sums + 32) + *(const vec*)(input + 2 * size));
                    const vec candidate = Vector::tanh4(*(const vec*)(sums + 48) + *(const vec*)(input + 3 * size));
                    const vec held = forget_gate * *(const vec*)(cell_before + place) + input_gate * candidate;
                    const vec bounded = Vector::tanh4(held);
                    *(vec*)(gates + gate) = input_gate;
                    *(vec*)(gates + gate + size) = forget_gate;
                    *(vec*)(gates + gate + 2 * size) = output_gate;
                    *(vec*)(gates + gate + 3 * size) = candidate;
                    *(vec*)(cell + (long long)(first + m) * size + unit + j) = held;
                    *(vec*)(squashed + place) = bounded;
                    *(vec*)(outputs + place) = output_gate * bounded;
                }
        }
    }
"""

BACKWARD = r"""
    const long long* table = (const long long*)job;
    const int steps = (int)table[0], all_rows = (int)table[1], size = (int)table[2], block_rows = (int)table[3];
    const float* keep = (const float*)table[5];
    const long long* network = table + 6 + block / table[4] * 8;
    const float* grad_outputs = (const float*)network[0];
    const float* transposed = (const float*)network[1];
    float* grad_hidden = (float*)network[2];
    float* grad_cell = grad_hidden + (long long)all_rows * size;
    const float* gates = (const float*)network[4];
    const float* cell_before = (const float*)network[5] + (long long)steps * all_rows * size;
    const float* squashed = cell_before + (long long)steps * all_rows * size;
    float* grad_gates = (float*)network[6];
    const int first = (int)(block % table[4]) * block_rows;
    const int rows = all_rows - first < block_rows ? all_rows - first : block_rows;
    const vec one = Vector::all(1.0f);

    for (int t = steps - 1; t >= 0; --t) {
        const long long at = (long long)t * all_rows + first;
        for (int m = 0; m < rows; ++m) {
            const vec kept = Vector::all(keep[at + m]);
            const float* gate = gates + (at + m) * 4 * size;
            float* grad_gate = grad_gates + (at + m) * 4 * size;
            float* into_hidden = grad_hidden + (long long)(first + m) * size;
            float* into_cell = grad_cell + (long long)(first + m) * size;
            for (int j = 0; j < size; j += 4) {
                const long long place = (at + m) * size + j;
                const vec input_gate = *(const vec*)(gate + j), forget_gate = *(const vec*)(gate + size + j);
                const vec output_gate = *(const vec*)(gate + 2 * size + j);
                const vec candidate = *(const vec*)(gate + 3 * size + j);
                const vec bounded = *(const vec*)(squashed + place);
                const vec of_hidden = *(vec*)(into_hidden + j) + *(const vec*)(grad_outputs + place);
                const vec of_cell = *(vec*)(into_cell + j) + of_hidden * output_gate * (one - bounded * bounded);
                *(vec*)(grad_gate + j) = of_cell * candidate * input_gate * (one - input_gate);
                *(vec*)(grad_gate + size + j) =
                    of_cell * *(const vec*)(cell_before + place) * forget_gate * (one - forget_gate);
                *(vec*)(grad_gate + 2 * size + j) = of_hidden * bounded * output_gate * (one - output_gate);
                *(vec*)(grad_gate + 3 * size + j) = of_cell * input_gate * (one - candidate * candidate);
                *(vec*)(into_cell + j) = of_cell * forget_gate * kept;
            }
        }
        for (int j = 0; j < size; j += 4)
            for (int m = 0; m < rows; m += LUDUS_TALL) {
                vec sums[LUDUS_TALL];
                const float* into = grad_gates + (at + m) * 4 * size;
                Product::tile(into, rows - m, transposed + (long long)j * 4 * size, 4 * size, sums);
                for (int i = 0; i < LUDUS_TALL && m + i < rows; ++i) {
                    float* to = grad_hidden + (long long)(first + m + i) * size + j;
                    *(vec*)to = sums[i] * Vector::all(keep[at + m + i]);
                }
            }
    }
"""

TRANSPOSE = r"""
    // Sixteen columns of the recurrent weights (4 size, size) become rows of the copy (size, 4 size).
    const long long* table = (const long long*)job;
    const int size = (int)table[2], first = (int)(block % table[4]) * 16;
    const long long* network = table + 6 + block / table[4] * 8;
    const float* weight = (const float*)network[3];
    float* transposed = (float*)network[1];
    for (int i = 0; i < 4 * size; i += 4)
        for (int j = first; j < first + 16; j += 4) {
            vec row[4];
            #pragma clang loop unroll(full)
            for (int k = 0; k < 4; ++k) row[k] = *(const vec*)(weight + (long long)(i + k) * size + j);
            const vec a = __builtin_shufflevector(row[0], row[1], 0, 4, 1, 5);
            const vec b = __builtin_shufflevector(row[2], row[3], 0, 4, 1, 5);
            const vec c = __builtin_shufflevector(row[0], row[1], 2, 6, 3, 7);
            const vec d = __builtin_shufflevector(row[2], row[3], 2, 6, 3, 7);
            float* to = transposed + (long long)j * 4 * size + i;
            *(vec*)to = __builtin_shufflevector(a, b, 0, 1, 4, 5);
            *(vec*)(to + 4 * size) = __builtin_shufflevector(a, b, 2, 3, 6, 7);
            *(vec*)(to + 8 * size) = __builtin_shufflevector(c, d, 0, 1, 4, 5);
            *(vec*)(to + 12 * size) = __builtin_shufflevector(c, d, 2, 3, 6, 7);
        }
"""


wp.set_module_options({"enable_backward": False})


@wp.func_native(VECTORS + PRODUCT + FORWARD)  # type: ignore[untyped-decorator]
def _forward(job: wp.uint64, block: int) -> None: ...


@wp.func_native(VECTORS + PRODUCT + BACKWARD)  # type: ignore[untyped-decorator]
def _backward(job: wp.uint64, block: int) -> None: ...


@wp.func_native(VECTORS + TRANSPOSE)  # type: ignore[untyped-decorator]
def _transpose(job: wp.uint64, block: int) -> None: ...


@wp.kernel
def forward_kernel(job: wp.uint64, first: int) -> None:
    """Run one block of rows through all steps."""
    _forward(job, first + wp.tid())  # type: ignore[operator]  # one axis, so one number


@wp.kernel
def backward_kernel(job: wp.uint64, first: int) -> None:
    """Run one block of rows back through all steps."""
    _backward(job, first + wp.tid())  # type: ignore[operator]  # one axis, so one number


@wp.kernel
def transpose_kernel(job: wp.uint64, first: int) -> None:
    """Transpose sixteen columns of the recurrent weights."""
    _transpose(job, first + wp.tid())  # type: ignore[operator]  # one axis, so one number
