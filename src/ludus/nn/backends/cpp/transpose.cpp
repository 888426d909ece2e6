// The body of the kernel that transposes sixteen columns of the recurrent weights.
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
