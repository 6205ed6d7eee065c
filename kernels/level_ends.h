// Conservation across the ends of levels of refinement (hiresx/solver/level_conservation.py). An entry of a list is a
// node of a padded array; `weights` are those of its rates r = 1/J dq/dt in the rate of change of the integrals.

// What a node at the end of a level takes of the defect, for its volume: the sum of the squares of all dq/dt. A shock
// that crosses the end thus takes all of it, and a flow at rest up to round-off takes it everywhere alike.
HD real share_of_defect(const rate_real *r, long long p, long long sv, real jacobian) {
    real square = real(1e-20);
    for (int v = 0; v < conserved_variables; ++v) {
        const real rate = jacobian * r[v * sv + p];
        square += rate * rate;
    }
    return square;
}

// partial[v][i]: the weighted rates of the entries i first, i first + apart, ..., `height` of them at most; behind all
// variables the shares of those entries that are among the first `ends`, the nodes at the end of the level.
KERNEL(level_sums, int i, int j, int k, const int *nodes, const real *weights, int count, int ends, int first, int apart,
       int height, long long sv, const rate_real *r, const work_real *jacobian, int columns, real *partial) {
    real sum[conserved_variables + 1];
    for (int v = 0; v <= conserved_variables; ++v) sum[v] = real(0);
    for (int m = 0; m < height; ++m) {
        const long long n = (long long)i * first + (long long)m * apart;
        if (n >= count) break;
        const long long p = nodes[n];
        for (int v = 0; v < conserved_variables; ++v) sum[v] += weights[n] * r[v * sv + p];
        if (n < ends) sum[conserved_variables] += weights[n] / jacobian[p] * share_of_defect(r, p, sv, jacobian[p]);
    }
    for (int v = 0; v <= conserved_variables; ++v) partial[(long long)v * columns + i] = sum[v];
}

// Takes the defect back. defect: of each variable, and the sum of the shares.
KERNEL(level_ends, int i, int j, int k, const int *nodes, long long sv, rate_real *r, const work_real *jacobian,
       const real *defect) {
    const long long p = nodes[i];
    const real part = share_of_defect(r, p, sv, jacobian[p]) / (jacobian[p] * defect[conserved_variables]);
    for (int v = 0; v < conserved_variables; ++v) r[v * sv + p] -= part * defect[v];
}
