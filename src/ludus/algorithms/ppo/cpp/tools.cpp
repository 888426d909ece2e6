// Both networks forward and backward. Tables are those at the top of native_mlp.py. Matrices are row-major and padded
// with zeros to whole lanes of 8.
struct Tools : Vector {
    static int pad(int size) { return (size + 7) & ~7; }

    // Matrices on the right of a product lie in panels of 8 columns: (k, n) is at panel(k, n, depth). Read along k, a
    // panel is one stream. Rows of 128 columns would put every k into the same few sets of the first cache.
    static int panel(int k, int n, int depth) { return (n & ~7) * depth + 8 * k + (n & 7); }

    // 8 x 8 of c, which stay in registers, grow by one k: eight numbers of a column of a times eight of a row of b.
    static void grow(vec sum[8][2], const vec* column, int lane, const float* from) {
        const vec left = *(const vec*)from, right = *(const vec*)(from + 4);
        #pragma clang loop unroll(full)
        for (int i = 0; i < 8; ++i) {
            sum[i][0] = __builtin_elementwise_fma(all(column[i][lane]), left, sum[i][0]);
            sum[i][1] = __builtin_elementwise_fma(all(column[i][lane]), right, sum[i][1]);
        }
    }

    // c = a b, where a is row-major and b in panels.
    static void product(float* c, const float* a, const float* b, int rows, int columns, int depth) {
        for (int m = 0; m < rows; m += 8)
        for (int n = 0; n < columns; n += 8) {
            const float* from = b + n * depth;
            vec sum[8][2];
            #pragma clang loop unroll(full)
            for (int i = 0; i < 8; ++i) sum[i][0] = sum[i][1] = all(0.0f);
            for (int k = 0; k < depth; k += 4, from += 32) {
                vec column[8];
                #pragma clang loop unroll(full)
                for (int i = 0; i < 8; ++i) column[i] = *(const vec*)(a + (m + i) * depth + k);
                grow(sum, column, 0, from);
                grow(sum, column, 1, from + 8);
                grow(sum, column, 2, from + 16);
                grow(sum, column, 3, from + 24);
            }
            #pragma clang loop unroll(full)
            for (int i = 0; i < 8; ++i) {
                *(vec*)(c + (m + i) * columns + n) = sum[i][0];
                *(vec*)(c + (m + i) * columns + n + 4) = sum[i][1];
            }
        }
    }

    // Copies `count` rows of a row-major matrix into panels.
    static void pack(float* to, const float* from, int columns, int count) {
        for (int n = 0; n < columns; n += 8)
            for (int k = 0; k < count; ++k, to += 8) {
                *(vec*)to = *(const vec*)(from + k * columns + n);
                *(vec*)(to + 4) = *(const vec*)(from + k * columns + n + 4);
            }
    }

    // c = a^T b, where both are row-major with `depth` rows, of which `PACKED_ROWS` (native_mlp.py) are packed at once.
    static void outer_product(float* c, const float* a, const float* b, float* packed, int rows, int columns,
                              int depth) {
        const int most = 128;
        for (int first = 0; first < depth; first += most) {
            const int count = depth - first < most ? depth - first : most;
            float* others = packed + most * rows;
            pack(packed, a + first * rows, rows, count);
            pack(others, b + first * columns, columns, count);
            for (int m = 0; m < rows; m += 8)
            for (int n = 0; n < columns; n += 8) {
                const float *x = packed + m * count, *y = others + n * count;
                vec sum[8][2];
                #pragma clang loop unroll(full)
                for (int i = 0; i < 8; ++i) {
                    float* to = c + (m + i) * columns + n;
                    sum[i][0] = first ? *(vec*)to : all(0.0f);
                    sum[i][1] = first ? *(vec*)(to + 4) : all(0.0f);
                }
                for (int k = 0; k < count; ++k, x += 8, y += 8) {
                    const vec low = *(const vec*)x, high = *(const vec*)(x + 4);
                    const vec left = *(const vec*)y, right = *(const vec*)(y + 4);
                    #pragma clang loop unroll(full)
                    for (int i = 0; i < 4; ++i) {
                        sum[i][0] = __builtin_elementwise_fma(all(low[i]), left, sum[i][0]);
                        sum[i][1] = __builtin_elementwise_fma(all(low[i]), right, sum[i][1]);
                        sum[i + 4][0] = __builtin_elementwise_fma(all(high[i]), left, sum[i + 4][0]);
                        sum[i + 4][1] = __builtin_elementwise_fma(all(high[i]), right, sum[i + 4][1]);
                    }
                }
                #pragma clang loop unroll(full)
                for (int i = 0; i < 8; ++i) {
                    *(vec*)(c + (m + i) * columns + n) = sum[i][0];
                    *(vec*)(c + (m + i) * columns + n + 4) = sum[i][1];
                }
            }
        }
    }

    static void add_bias_and_activate(float* to, const float* bias, int rows, int outputs, int activation) {
        const int width = pad(outputs);
        float full[1024];
        for (int j = 0; j < width; ++j) full[j] = j < outputs ? bias[j] : 0.0f;
        for (int i = 0; i < rows; ++i)
            for (int j = 0; j < width; j += 4) {
                vec x = *(vec*)(to + i * width + j) + *(vec*)(full + j);
                if (activation == 0) x = tanh4(x);
                if (activation == 1) x = __builtin_elementwise_max(x, all(0.0f));
                *(vec*)(to + i * width + j) = x;
            }
    }

    // Copies the weights with padding into panels, both ways round, where they changed: in a rollout none do, and
    // transposing wide layers in every step would cost more than the products of few rows.
    static void prepare(const float* parameters, float* work, const int* layer) {
        const int inputs = layer[0], outputs = layer[1], wide = pad(inputs), tall = pad(outputs);
        float *transposed = work + layer[4], *straight = work + layer[5];
        for (int o = 0; o < outputs; ++o) {
            const float* weight = parameters + layer[2] + o * inputs;
            int changed = 0;
            for (int i = 0; i < inputs; ++i)
                changed |= ((const int*)weight)[i] ^ ((const int*)straight)[panel(o, i, tall)];
            if (!changed) continue;
            for (int i = 0; i < inputs; ++i)
                straight[panel(o, i, tall)] = transposed[panel(i, o, wide)] = weight[i];
        }
    }

    static void forward(const float* parameters, float* work, const int* layers, const int* whole, int rows) {
        for (int l = 0; l < whole[0]; ++l) {
            const int* layer = layers + 10 * l;
            const int wide = pad(layer[0]), tall = pad(layer[1]);
            prepare(parameters, work, layer);
            product(work + layer[7], work + layer[6], work + layer[4], rows, tall, wide);
            const bool last = l == whole[1] - 1 || l == whole[0] - 1;
            add_bias_and_activate(work + layer[7], parameters + layer[3], rows, layer[1], last ? 2 : whole[10]);
        }
    }

    static void backward(const float* parameters, float* gradient, float* work, const int* layers, const int* whole,
                         int rows) {
        for (int l = whole[0] - 1; l >= 0; --l) {
            const int* layer = layers + 10 * l;
            const int inputs = layer[0], outputs = layer[1], wide = pad(inputs), tall = pad(outputs);
            const float* slope = work + layer[8];
            float* scratch = work + whole[12];
            outer_product(scratch, slope, work + layer[6], work + whole[17], tall, wide, rows);
            for (int o = 0; o < outputs; ++o)
                for (int i = 0; i < inputs; ++i) gradient[layer[2] + o * inputs + i] = scratch[o * wide + i];
            float sums[1024];
            for (int j = 0; j < tall; ++j) sums[j] = 0.0f;
            for (int i = 0; i < rows; ++i)
                for (int j = 0; j < tall; ++j) sums[j] += slope[i * tall + j];
            for (int o = 0; o < outputs; ++o) gradient[layer[3] + o] = sums[o];
            if (layer[9] < 0) continue;
            float* below = work + layer[9];
            const float* source = work + layer[6];
            product(below, slope, work + layer[5], rows, wide, tall);
            for (int i = 0; i < rows * wide; i += 4) {
                const vec y = *(const vec*)(source + i);
                const vec dy = *(vec*)(below + i);
                const vec kept = (vec)((ivec)dy & (y > 0.0f));
                *(vec*)(below + i) = whole[10] == 0 ? dy * (1.0f - y * y) : kept;
            }
        }
    }
};
