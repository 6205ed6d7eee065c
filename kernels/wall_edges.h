// Conservation of mass where a slip wall continues as a no-slip wall on the same face. The mass that flows along the
// face leaves the nodes before the slip wall with the weight one half on the face, and enters nodes before the no-slip
// wall with the weights of wall_sums.h. The difference is added to the no-slip wall's node beside the edge, so that the
// sum is conserved. Divided by the node's volume it is of the size of the shear rate of the mass flux: at the edge,
// where the flow has a singularity, all errors are of that order or larger.
#include "scheme.h"
#include "wall_sums.h"

// The mass flux at half point 1/2 of the line from node p, computed as in the sweeps, which store none of their fluxes.
// area: receives the corrected area vector there; fields, sensor: what the flux reads.
HD real mass_flux_at(const_state_pointer q, const work_real *m, const work_real *fields, const work_real *sensor,
                     long long p, long long sd, stride sv, real *area) {
    auto area_at = [&](int s, int d) { return load<real>(m + d * sv + p + s * sd); };
    real flux[gas_variables];
#if HX_SPLIT
    real split[gas_variables];
    split_flux_at(p, sd, sv, q, m, fields, sensor, split, flux);
#else
    (void)sensor;
    constexpr int first = 1 - correction_reach, count = 2 * correction_reach;
    auto state = [&](int s, int v) { return load<real>(q + v * sv + p + s * sd); };
    real left[gas_variables], right[gas_variables], f[count][gas_variables], pressure[count];
#ifdef HX_INTERPOLATES_NODES
    real other[gas_variables];
    Rough<real> rough = {};
    for (int s = 0; s < 2; ++s) {
        for (int d = 0; d < 3; ++d) area[d] = area_at(s, d);
        const auto beside = [&](int at, int v) { return state(s + at, v); };
        rough = either(rough, interpolate(beside, area, s ? other : left, s ? right : other));
    }
#else
    for (int d = 0; d < 3; ++d) area[d] = interpolate_metric<real>([&](int s) { return area_at(s, d); });
    const Rough<real> rough = interpolate(state, area, left, right);
#endif
    for (int s = 0; s < count; ++s) {
        real own[gas_variables];
        for (int v = 0; v < gas_variables; ++v) own[v] = state(first + s, v);
        for (int d = 0; d < 3; ++d) area[d] = area_at(first + s, d);
        const Primitive<real> found = primitive(own);
        flux_of(own, found, area, f[s]);
        pressure[s] = found.p;
    }
    flux_between(left, right, rough, state, area_at, [&](int s, int v) { return f[s - first][v]; },
                 [&](int s) { return pressure[s - first]; },
                 [&](int s, int n) { return load<real>(fields + n * sv + p + s * sd); }, flux);
#endif
    for (int d = 0; d < 3; ++d) area[d] = corrected_metric<real>([&](int s) { return area_at(s, d); });
    return flux[0];
}

// Nodes i of the no-slip wall along its edge. s1: stride along the edge; sn: away from the wall; sd, positive: along
// the face and across the edge; upper: whether the slip wall lies in the direction of sd, else against it; m: area
// vectors of that direction. The mass has the velocity, the enthalpy and the scalars of its node. The mass that the
// velocity of a moving wall carries is left out, as in no_slip_mass.
KERNEL(wall_edge, int i, int j, int k, int o, int s1, int sn, int sd, int upper, stride sv, real u, real v, real w,
       const_work_field<3> m, const_work_field<HX_FLUX_FIELDS> fields, const_work_field<HX_SENSORS> sensor,
       const_state_field<conserved_variables> q, rate_field<conserved_variables> r) {
    const long long p = o + (long long)i * s1, half = upper ? p : p - sd;
    const real wall[3] = {u, v, w};
    real state[conserved_variables], area[3], mass = real(0);
    for (int c = 0; c < conserved_variables; ++c) state[c] = load<real>(q + c * sv + p);
#pragma unroll 1
    for (int l = 0; l < wall_weighted; ++l) {
        real flux = mass_flux_at(q, m, fields, sensor, half + (long long)l * sn, sd, sv, area);
        for (int d = 0; d < 3; ++d) flux -= state[0] * wall[d] * area[d];
        mass += (upper ? real(1) : real(-1)) * wall_step(l) * flux;
    }
    mass /= state[0];
    state[4] += primitive(state).p;
    for (int c = 0; c < conserved_variables; ++c) r[c * sv + p] += mass * state[c];
}
