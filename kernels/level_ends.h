// Conservation across the ends of levels of refinement (hiresx/solver/level_conservation.py). An entry of a list is a
// node of a padded array; `weights` are those of its rates r = 1/J dq/dt in the rate of change of the integrals.
//
// `sums` are of the defect of a group of levels, and of what its parts are measured by: density, momentum, energy and
// every scalar have a norm of dq/dt each, and an even share in proportion to rho, sqrt(rho e), e (the internal energy of
// a volume) and rho.
constexpr int norms = conserved_variables - 2, even_shares = 3;
constexpr int defect_sums = conserved_variables + norms + even_shares;

// The norm and the even share to which a variable belongs
HD constexpr int norm_of(int variable) { return variable == 0 ? 0 : variable < 4 ? 1 : variable - 2; }
HD constexpr int even_of(int variable) { return norm_of(variable) < even_shares ? norm_of(variable) : 0; }

// Of density, momentum, energy and scalars
template <class Values> HD void norms_of(const Values &values, real *norm) {
    for (int n = 0; n < norms; ++n) norm[n] = real(0);
    for (int v = 0; v < conserved_variables; ++v) norm[norm_of(v)] += real(values[v]) * real(values[v]);
    for (int n = 0; n < norms; ++n) norm[n] = square_root(norm[n]);
}

// Density and internal energy, which are positive in every flow that can go on
HD void positive_parts(const real *q, real &density, real &internal) {
    constexpr real tiny = real(1e-30);
    density = larger(q[0], tiny);
    internal = larger(q[4] - real(0.5) * (q[1] * q[1] + q[2] * q[2] + q[3] * q[3]) / density, tiny);
}

HD void even_shares_of(const real *q, real *even) {
    positive_parts(q, even[0], even[2]);
    even[1] = square_root(even[0]) * square_root(even[2]);
}

// How far the change d moves the state q: the sum of the changes of density, internal energy and velocity, seen by an
// observer who moves with it, in shares of rho, e and sqrt(e / rho). Below 1/2 density and pressure stay above half.
HD real relative_change(const real *q, const real *d) {
    real even[even_shares], energy = d[4], square = real(0);
    even_shares_of(q, even);
    for (int c = 1; c < 4; ++c) {
        const real u = q[c] / even[0], momentum = d[c] - u * d[0];
        energy -= u * (d[c] - real(0.5) * u * d[0]);
        square += momentum * momentum;
    }
    return absolute(d[0]) / even[0] + absolute(energy) / even[2] + square_root(square) / even[1];
}

// A node of a list: its state, dq/dt, and its even shares
struct LevelNode {
    real q[conserved_variables], rate[conserved_variables], even[even_shares];
    HD LevelNode(const_state_pointer state, const rate_real *r, real jacobian, long long p, stride sv) {
        for (int v = 0; v < conserved_variables; ++v) q[v] = state[v * sv + p], rate[v] = r[v * sv + p] * jacobian;
        even_shares_of(q, even);
    }

    // `part` of the defect that the node takes, and `left` of it, both in dq/dt. The part of every variable is in
    // proportion to the norm of its own rates: a shock that crosses the end of a level takes nearly all of it, and cold
    // gas ahead of the shock none of its energy. To the norm a tenth of that of an even distribution is added, so that
    // where no node has large rates none takes much. What would change the state before the step dt or behind it by more
    // than half is left to other nodes.
    HD void share(const real *sums, real dt, real *part, real *left) const {
        constexpr real most = real(0.5);
        const real *size = sums + conserved_variables, *evenly = size + norms;
        real norm[norms], of_defect[norms], next[conserved_variables], change[conserved_variables];
        norms_of(rate, norm);
        norms_of(sums, of_defect);
        for (int v = 0; v < conserved_variables; ++v) {
            const real added = real(0.1) * of_defect[norm_of(v)], total = size[norm_of(v)] + added;
            const real own = norm[norm_of(v)] + added * (even[even_of(v)] / evenly[even_of(v)]);
            part[v] = total > real(0) ? sums[v] * (own / total) : real(0);
            next[v] = q[v] + dt * rate[v], change[v] = dt * part[v];
        }
        const real taken = most / larger(larger(relative_change(q, change), relative_change(next, change)), most);
        for (int v = 0; v < conserved_variables; ++v) left[v] = (real(1) - taken) * part[v], part[v] *= taken;
    }

    // Its part, and the even share of the `rest` that all nodes have left
    HD real taken(int v, const real *part, const real *sums, const real *rest) const {
        return part[v] + rest[v] * (even[even_of(v)] / sums[conserved_variables + norms + even_of(v)]);
    }
};

// partial[v][i]: of the entries i first, i first + apart, ..., `height` of them at most, the sums of which the first are
// the weighted rates, and the others are over the entries among the first `ends`, where the defect is taken back.
KERNEL(level_sums, int i, int j, int k, const int *nodes, const real *weights, int count, int ends, int first, int apart,
       int height, stride sv, const_state_field<conserved_variables> q, const rate_real *r, const work_real *jacobian,
       int columns, real *partial) {
    real sum[defect_sums], norm[norms];
    for (int v = 0; v < defect_sums; ++v) sum[v] = real(0);
    for (int m = 0; m < height; ++m) {
        const long long n = (long long)i * first + (long long)m * apart;
        if (n >= count) break;
        const long long p = nodes[n];
        for (int v = 0; v < conserved_variables; ++v) sum[v] += weights[n] * r[v * sv + p];
        if (n >= ends) continue;
        const LevelNode node(q, r, jacobian[p], p, sv);
        const real mass = weights[n] / jacobian[p];
        norms_of(node.rate, norm);
        for (int v = 0; v < norms; ++v) sum[conserved_variables + v] += mass * norm[v];
        for (int v = 0; v < even_shares; ++v) sum[conserved_variables + norms + v] += mass * node.even[v];
    }
    for (int v = 0; v < defect_sums; ++v) partial[(long long)v * columns + i] = sum[v];
}

// As level_sums, of the first `ends` entries: what they leave of the defect.
KERNEL(level_rest, int i, int j, int k, const int *nodes, const real *weights, int ends, int first, int apart, int height,
       stride sv, const_state_field<conserved_variables> q, const rate_real *r, const work_real *jacobian, const real *dt,
       const real *sums, int columns, real *partial) {
    real sum[conserved_variables], part[conserved_variables], left[conserved_variables];
    for (int v = 0; v < conserved_variables; ++v) sum[v] = real(0);
    for (int m = 0; m < height; ++m) {
        const long long n = (long long)i * first + (long long)m * apart;
        if (n >= ends) break;
        const long long p = nodes[n];
        LevelNode(q, r, jacobian[p], p, sv).share(sums, dt[0], part, left);
        for (int v = 0; v < conserved_variables; ++v) sum[v] += weights[n] / jacobian[p] * left[v];
    }
    for (int v = 0; v < conserved_variables; ++v) partial[(long long)v * columns + i] = sum[v];
}

// Takes the defect back: from the rates
KERNEL(level_ends, int i, int j, int k, const int *nodes, stride sv, const_state_field<conserved_variables> q,
       rate_real *r, const work_real *jacobian, const real *dt, const real *sums, const real *rest) {
    const long long p = nodes[i];
    real part[conserved_variables], left[conserved_variables];
    const LevelNode node(q, r, jacobian[p], p, sv);
    node.share(sums, dt[0], part, left);
    for (int v = 0; v < conserved_variables; ++v) r[v * sv + p] -= node.taken(v, part, sums, rest) / jacobian[p];
}

// Likewise, as the change of the state in the step dt
KERNEL(level_states, int i, int j, int k, const int *nodes, stride sv, state_field<conserved_variables> q,
       const rate_real *r, const work_real *jacobian, const real *dt, const real *sums, const real *rest) {
    const long long p = nodes[i];
    real part[conserved_variables], left[conserved_variables];
    const LevelNode node(q, r, jacobian[p], p, sv);
    node.share(sums, dt[0], part, left);
    for (int v = 0; v < conserved_variables; ++v) q[v * sv + p] -= dt[0] * node.taken(v, part, sums, rest);
}
