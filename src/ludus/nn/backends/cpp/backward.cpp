// The body of the backward kernel: one block of rows goes back through all steps.
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
