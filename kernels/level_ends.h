// Conservation across the ends of levels of refinement (hiresx/solver/level_conservation.py). An entry of a list is a
// node of a padded array; `weights` are the weights of its rates r = 1/J dq/dt in the rate of change of the integrals.
//
// `sums` of a group of levels: the defect of every conserved variable, that is the rate of change of its integral; a
// norm of dq/dt for density, momentum, energy and every scalar; the even shares, in proportion to rho, sqrt(rho e) and
// e (internal energy per volume), with what they carry; and what shares by the norms carry. Shares of mass carry
// momentum and energy, and shares of momentum carry energy.
constexpr int norms = conserved_variables - 2, even_shares = 3;
constexpr int carried_sums = 7, even_sums = even_shares + carried_sums;
constexpr int defect_sums = conserved_variables + norms + even_sums + carried_sums;

// The number of the norm of a variable
HD constexpr int norm_of(int variable) { return variable == 0 ? 0 : variable < 4 ? 1 : variable - 2; }

// The norms of the rates `of` for density, momentum, energy and scalars, seen by an observer who moves with the gas of
// state q
HD void norms_of(const real *q, const rate_real *of, long long apart, real *norm) {
    real square = real(0), energy = real(of[4 * apart]);
    for (int c = 1; c < 4; ++c) {
        const real u = q[c] / q[0], momentum = real(of[c * apart]) - u * real(of[0]);
        energy -= u * (real(of[c * apart]) - real(0.5) * u * real(of[0]));
        square += momentum * momentum;
    }
    for (int v = 0; v < conserved_variables; ++v)
        if (v < 1 || v > 4) norm[norm_of(v)] = absolute(real(of[v * apart]));
    norm[1] = square_root(square), norm[2] = absolute(energy);
}

HD void even_shares_of(const real *q, real *even) {
    const real internal = q[4] - real(0.5) * (q[1] * q[1] + q[2] * q[2] + q[3] * q[3]) / q[0];
    even[0] = q[0], even[2] = larger(internal, real(1e-30));
    even[1] = square_root(even[0] * even[2]);
}

// How far the change d moves the state q: the sum of the changes of density, internal energy and velocity, relative to
// rho, e and sqrt(e / rho), for an observer who moves with the gas. Below 1/2 density and pressure keep more than half
// of their values.
HD real relative_change(const real *q, const real *d) {
    constexpr real tiny = real(1e-30);
    const real volume = real(1) / larger(q[0], tiny);
    real internal = q[4], energy = d[4], square = real(0);
    for (int c = 1; c < 4; ++c) {
        const real u = q[c] * volume, momentum = d[c] - u * d[0];
        internal -= real(0.5) * u * q[c];
        energy -= u * (d[c] - real(0.5) * u * d[0]);
        square += momentum * momentum;
    }
    internal = larger(internal, tiny);
    return absolute(d[0]) * volume + (absolute(energy) + square_root(square * volume * internal)) / internal;
}

// Whether relative_change is below 1/2 because each of its three terms is below 1/6. The test has no divisions or
// roots, and nearly all nodes pass it.
HD bool bears(const real *q, const real *d) {
    const real square = q[1] * q[1] + q[2] * q[2] + q[3] * q[3], along = q[1] * d[1] + q[2] * d[2] + q[3] * d[3];
    const real internal = q[0] * q[4] - real(0.5) * square;
    const real energy = q[0] * (q[0] * d[4] - along) + real(0.5) * square * d[0];
    real momentum = real(0);
    for (int c = 1; c < 4; ++c) momentum += (q[0] * d[c] - q[c] * d[0]) * (q[0] * d[c] - q[c] * d[0]);
    return real(6) * absolute(d[0]) < q[0] && real(6) * absolute(energy) < q[0] * internal &&
           real(36) * momentum < q[0] * q[0] * internal;
}

// Adds to `sum` what shares carry: momentum and kinetic energy with mass, in 4 sums, and energy with momentum in 3.
HD void add_carried(const real *q, real of_mass, real of_momentum, real *sum) {
    for (int c = 0; c < 3; ++c) {
        const real u = q[c + 1] / q[0];
        sum[c] += of_mass * u, sum[3] += real(0.5) * of_mass * u * u, sum[4 + c] += of_momentum * u;
    }
}

HD void add_even(const real *q, const real *even, real mass, real *sum) {
    for (int v = 0; v < even_shares; ++v) sum[v] += mass * even[v];
    add_carried(q, mass * even[0], mass * even[1], sum + even_shares);
}

// Adds to `taken` what a node in the state q takes of `given`, the total for all nodes. share: its shares of mass,
// momentum and energy. Mass has the velocity of the node. The energy that mass and momentum carry is zero for an
// observer who moves with the node. Otherwise a share of the kinetic energy of fast and cold gas would far exceed the
// internal energy of the node.
HD void add_shares(const real *q, const real *given, const real *share, real *taken) {
    const real mass = given[0] * share[0];
    taken[0] += mass;
    taken[4] += given[4] * share[2];
    for (int c = 1; c < 4; ++c) {
        const real u = q[c] / q[0], momentum = given[c] * share[1];
        taken[c] += mass * u + momentum;
        taken[4] += u * (real(0.5) * mass * u + momentum);
    }
}

// partial[v][i]: sums over the entries i first, i first + apart, ..., `height` of them at most. The first sums are
// those of the weighted rates. The others are over the entries among the first `ends`, where the defect is taken back.
KERNEL(level_sums, int i, int j, int k, const int *nodes, const real *weights, int count, int ends, int first, int apart,
       int height, stride sv, const_state_field<conserved_variables> q, const rate_real *r, const work_real *jacobian,
       int columns, real *partial) {
    real sum[defect_sums], norm[norms], state[conserved_variables], even[even_shares];
    for (int v = 0; v < defect_sums; ++v) sum[v] = real(0);
    for (int m = 0; m < height; ++m) {
        const long long n = (long long)i * first + (long long)m * apart;
        if (n >= count) break;
        const long long p = nodes[n];
        for (int v = 0; v < conserved_variables; ++v) sum[v] += weights[n] * r[v * sv + p];
        if (n >= ends) continue;
        for (int v = 0; v < conserved_variables; ++v) state[v] = q[v * sv + p];
        norms_of(state, r + p, sv, norm);
        even_shares_of(state, even);
        for (int v = 0; v < norms; ++v) sum[conserved_variables + v] += weights[n] * norm[v];
        add_even(state, even, weights[n] / jacobian[p], sum + conserved_variables + norms);
        add_carried(state, weights[n] * norm[0], weights[n] * norm[1], sum + conserved_variables + norms + even_sums);
    }
    for (int v = 0; v < defect_sums; ++v) partial[(long long)v * columns + i] = sum[v];
}

// parts[n][v]: the part of the defect, in dq/dt, that the node of the entry n < `ends` takes. The parts of a variable
// are in proportion to the norm of its rates, seen by an observer who moves with the node. A shock that crosses the end
// of a level therefore takes nearly all of it, and cold gas ahead of the shock takes none of its energy, however fast
// it is. A tenth of the defect, evenly distributed, is added to the norms, so that no node takes much where no node has
// large rates. A part that would change the state at the beginning of the step dt or at its end by more than half is
// reduced, and the rest is left to other nodes. partial: what is left of the defect, in the form of level_sums.
KERNEL(level_parts, int i, int j, int k, const int *nodes, const real *weights, int ends, int first, int apart, int height,
       stride sv, const_state_field<conserved_variables> q, const rate_real *r, const work_real *jacobian, const real *dt,
       const real *sums, real *parts, int columns, real *partial) {
    constexpr real most = real(0.5);
    real left[conserved_variables], norm[norms], by_rates[norms], evenly[norms], even[even_shares];
    real defect[conserved_variables], state[conserved_variables], next[conserved_variables], part[conserved_variables];
    real change[conserved_variables];
    for (int v = 0; v < conserved_variables; ++v) left[v] = real(0), defect[v] = sums[v];
    const real *total = sums + conserved_variables, *evens = total + norms, *carried = evens + even_sums;
    for (int n = 0; n < norms; ++n) {
        const int v = n < 2 ? n : n + 2;
        real size = absolute(defect[v]);
        if (n == 1) size = square_root(defect[1] * defect[1] + defect[2] * defect[2] + defect[3] * defect[3]);
        const real added = real(0.1) * size, all = total[n] + added;
        by_rates[n] = all > real(0) ? real(1) / all : real(0);
        evenly[n] = by_rates[n] * added / evens[n < even_shares ? n : 0];
        auto with = [&](int c) { return by_rates[n] * carried[c] + evenly[n] * evens[even_shares + c]; };
        if (n == 0)
            for (int c = 0; c < 4; ++c) defect[c + 1] -= defect[0] * with(c);
        if (n == 1)
            for (int c = 0; c < 3; ++c) defect[4] -= defect[c + 1] * with(c + 4);
    }
    const real step = dt[0];
    for (int m = 0; m < height; ++m) {
        const long long n = (long long)i * first + (long long)m * apart;
        if (n >= ends) break;
        const long long p = nodes[n];
        const real scale = jacobian[p];
        for (int v = 0; v < conserved_variables; ++v) state[v] = q[v * sv + p];
        norms_of(state, r + p, sv, norm);
        even_shares_of(state, even);
        for (int s = 0; s < norms; ++s)
            norm[s] = by_rates[s] * scale * norm[s] + evenly[s] * even[s < even_shares ? s : 0];
        for (int v = 0; v < conserved_variables; ++v) part[v] = v < gas_variables ? real(0) : defect[v] * norm[norm_of(v)];
        add_shares(state, defect, norm, part);
        for (int v = 0; v < conserved_variables; ++v)
            change[v] = step * part[v], next[v] = state[v] + step * scale * r[v * sv + p];
        if (!bears(state, change) || !bears(next, change)) {
            const real taken = most / larger(larger(relative_change(state, change), relative_change(next, change)), most);
            for (int v = 0; v < conserved_variables; ++v) {
                left[v] += weights[n] / scale * (real(1) - taken) * part[v];
                part[v] *= taken;
            }
        }
        for (int v = 0; v < conserved_variables; ++v) parts[n * conserved_variables + v] = part[v];
    }
    for (int v = 0; v < conserved_variables; ++v) partial[(long long)v * columns + i] = left[v];
}

// What a node takes: its part, and an even share of what all nodes have `left`, which is zero in nearly all steps.
HD void taken_by(const_state_pointer q, long long p, stride sv, const real *part, const real *sums, const real *left,
                 real *taken) {
    bool nothing = true;
    for (int v = 0; v < conserved_variables; ++v) taken[v] = part[v], nothing = nothing && left[v] == real(0);
    if (nothing) return;
    real state[conserved_variables], given[conserved_variables], share[even_shares];
    for (int v = 0; v < conserved_variables; ++v) state[v] = q[v * sv + p], given[v] = left[v];
    const real *evens = sums + conserved_variables + norms;
    even_shares_of(state, share);
    for (int n = 0; n < even_shares; ++n) share[n] /= evens[n];
    for (int c = 0; c < 4; ++c) given[c + 1] -= given[0] / evens[0] * evens[even_shares + c];
    for (int c = 0; c < 3; ++c) given[4] -= given[c + 1] / evens[1] * evens[even_shares + c + 4];
    add_shares(state, given, share, taken);
    for (int v = gas_variables; v < conserved_variables; ++v) taken[v] += left[v] * share[0];
}

// Subtracts the parts of the defect from the rates.
KERNEL(level_ends, int i, int j, int k, const int *nodes, stride sv, const_state_field<conserved_variables> q,
       rate_real *r, const work_real *jacobian, const real *sums, const real *parts, const real *left) {
    const long long p = nodes[i];
    real taken[conserved_variables];
    taken_by(q, p, sv, parts + (long long)i * conserved_variables, sums, left, taken);
    const real volume = real(1) / jacobian[p];
    for (int v = 0; v < conserved_variables; ++v) r[v * sv + p] -= volume * taken[v];
}

// Subtracts from the state its change by these parts in the step dt.
KERNEL(level_states, int i, int j, int k, const int *nodes, stride sv, state_field<conserved_variables> q, const real *dt,
       const real *sums, const real *parts, const real *left) {
    const long long p = nodes[i];
    real taken[conserved_variables];
    taken_by(q, p, sv, parts + (long long)i * conserved_variables, sums, left, taken);
    for (int v = 0; v < conserved_variables; ++v) q[v * sv + p] -= dt[0] * taken[v];
}
