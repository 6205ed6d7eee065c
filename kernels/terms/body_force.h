// Body force rho a and its work rho u . a. The acceleration a is (ax, ay, az) + kept[0] (kx, ky, kz).
KERNEL(body_force, int i, int j, int k, int o, int sj, int sk, stride sv, const_state_field<gas_variables> q,
       const_work_field<1> jacobian, real ax, real ay, real az, real kx, real ky, real kz, const real *kept,
       rate_field<gas_variables> r) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk;
    const real volume = real(1) / jacobian[p], more = kept[0];
    const real x = volume * (ax + more * kx), y = volume * (ay + more * ky), z = volume * (az + more * kz);
    const real rho = q[p], mx = q[sv + p], my = q[2 * sv + p], mz = q[3 * sv + p];
    r[sv + p] += rho * x;
    r[2 * sv + p] += rho * y;
    r[3 * sv + p] += rho * z;
    r[4 * sv + p] += mx * x + my * y + mz * z;
}

// partial[2][column]: sums along j of weight times the density, and of weight times the conserved variable `row`, a
// momentum. These sums and what follows are in double: the acceleration contains the difference of two nearly equal
// means, divided by a time step.
KERNEL(column_mass_flow, int i, int j, int k, int o, int sj, int sk, int height, int columns, int width, stride sv,
       const_state_field<gas_variables> q, const_field<1> weight, int row, double *partial) {
    double mass = 0.0, momentum = 0.0;
    for (int l = 0; l < height; ++l) {
        const long long p = o + i + (long long)(j + l) * sj + (long long)k * sk;
        const double share = weight[p];
        mass += share * double(q[p]), momentum += share * double(q[row * sv + p]);
    }
    const long long at = (long long)k * width + i;
    partial[at] = mass, partial[columns + at] = momentum;
}

// Positions in the array `kept` of hiresx/output/watch/monitors/body_force_values.py: whether an earlier time exists,
// whether a goal exists, the goal, the acceleration, the earlier time and its mean mass flow; present mean density and
// mass flow.
enum { KEPT_BEFORE, KEPT_HAS_GOAL, KEPT_GOAL, KEPT_ACCELERATION, KEPT_TIME, KEPT_FLOW_BEFORE, KEPT_DENSITY, KEPT_FLOW };

// One thread: the acceleration of the step that begins at the clock's time, from sums[row][2][terms]. It changes at
// most once per time. added: that acceleration minus `given`.
KERNEL(keep_mass_flow, int i, int j, int k, int rows, int terms, const double *sums, double volume, int keep,
       double response, double given, const double *clock, double *kept, real *added) {
    double mass = 0.0, momentum = 0.0;
    for (int row = 0; row < rows; ++row)
        for (int l = 0; l < terms; ++l) {
            mass += sums[2 * terms * row + l];
            momentum += sums[2 * terms * row + terms + l];
        }
    const double density = mass / volume, flow = momentum / volume, time = clock[0];
    kept[KEPT_DENSITY] = density, kept[KEPT_FLOW] = flow;
    const bool before = kept[KEPT_BEFORE] > 0.0;
    if (!keep || !(flow - flow == 0.0) || (before && time == kept[KEPT_TIME])) return;
    if (!(kept[KEPT_HAS_GOAL] > 0.0)) kept[KEPT_HAS_GOAL] = 1.0, kept[KEPT_GOAL] = flow;
    if (before) {
        const double dt = time - kept[KEPT_TIME];
        kept[KEPT_ACCELERATION] += ((kept[KEPT_GOAL] - flow) / (dt > response ? dt : response)
                                    - (flow - kept[KEPT_FLOW_BEFORE]) / dt) / density;
    }
    kept[KEPT_BEFORE] = 1.0, kept[KEPT_TIME] = time, kept[KEPT_FLOW_BEFORE] = flow;
    added[0] = real(kept[KEPT_ACCELERATION] - given);
}
