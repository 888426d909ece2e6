// The body of the forward kernel: one block of rows goes through all steps.
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
