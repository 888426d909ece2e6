// Matrix products as sums over two contiguous rows; see warp_kernels.py.
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
