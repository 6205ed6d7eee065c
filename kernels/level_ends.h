// Conservation across the ends of levels of refinement (hiresx/solver/level_conservation.py). An entry of a list is a
// node of a padded array; `weights` are those of its rates r = 1/J dq/dt in the rate of change of the integrals.

// The root of the sum of the squares of the numbers of all variables
template <class Number> HD real norm_of_variables(const Number *of, long long apart) {
    real square = real(0);
    for (int v = 0; v < conserved_variables; ++v) square += real(of[v * apart]) * real(of[v * apart]);
    return square_root(square);
}

// partial[v][i]: the weighted rates of the entries i first, i first + apart, ..., `height` of them at most; behind all
// variables the integral of the norm of dq/dt over those that are among the first `ends`, where the defect is taken back.
KERNEL(level_sums, int i, int j, int k, const int *nodes, const real *weights, int count, int ends, int first, int apart,
       int height, long long sv, const rate_real *r, int columns, real *partial) {
    real sum[conserved_variables + 1];
    for (int v = 0; v <= conserved_variables; ++v) sum[v] = real(0);
    for (int m = 0; m < height; ++m) {
        const long long n = (long long)i * first + (long long)m * apart;
        if (n >= count) break;
        const long long p = nodes[n];
        for (int v = 0; v < conserved_variables; ++v) sum[v] += weights[n] * r[v * sv + p];
        if (n < ends) sum[conserved_variables] += weights[n] * norm_of_variables(r + p, sv);
    }
    for (int v = 0; v <= conserved_variables; ++v) partial[(long long)v * columns + i] = sum[v];
}

// Takes the defect back, at every node in proportion to the norm of dq/dt there: a shock that crosses the end of a level
// takes nearly all of it. To the norm a tenth of that of an even distribution over the `mass` of all nodes is added, so
// that where no node has large rates none takes much. defect: of each variable, and the integral of the norms.
KERNEL(level_ends, int i, int j, int k, const int *nodes, real mass, long long sv, rate_real *r,
       const work_real *jacobian, const real *defect) {
    const real even = real(0.1) * norm_of_variables(defect, 1), total = defect[conserved_variables] + even;
    if (!(total > real(0))) return;
    const long long p = nodes[i];
    const real part = (norm_of_variables(r + p, sv) + even / (mass * jacobian[p])) / total;
    for (int v = 0; v < conserved_variables; ++v) r[v * sv + p] -= part * defect[v];
}
