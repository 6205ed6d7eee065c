// The split and the hybrid form of the inviscid terms with a thread per point, one direction at a time. Arguments are
// those of inviscid.h.
//   decomposed plan: split_numerical_flux -> flux_difference
//   fused plan: split_march.h, the sweeps of fused.h where there is a sensor, split_face_mass at walls
#if HX_SPLIT
// split: the split flux at half point 1/2 of the line through node p; flux: the flux of the hybrid form. The
// interpolated flux comes first, since both at a time would not fit the registers of a GPU.
template <class T>
HD void split_flux_at(long long p, long long sd, stride sv, const_state_pointer q, const work_real *m,
                      const work_real *fields, const work_real *sensor, T *split, T *flux) {
    const auto state = [&](int s, int v) { return load<T>(q + v * sv + p + s * sd); };
    const auto area = [&](int s, int d) { return load<T>(m + d * sv + p + s * sd); };
    const auto read = [&](int s, T *node, T *through) {
        T own[gas_variables];
        for (int v = 0; v < gas_variables; ++v) own[v] = state(s, v);
        for (int d = 0; d < 3; ++d) through[d] = area(s, d);
        split_node(own, node);
    };
#if HX_SENSORS
    const T share = hybrid_share<T>([&](int s) { return load<T>(sensor + p + s * sd); });
    const bool asked = anywhere(share > T(real(0)));
    Rough<T> rough = {};
    T other[gas_variables];
    for (int v = 0; v < gas_variables; ++v) other[v] = T(real(0));
    if (asked) {
        T left[gas_variables], right[gas_variables], nodes[2 * split_reach][split_variables], through[3];
        rough = interpolated_states(state, area, left, right);
        for (int s = 0; s < 2 * split_reach; ++s) read(s + 1 - split_reach, nodes[s], through);
        interpolated_flux(state, area, [&](int s, int v) { return nodes[s + split_reach - 1][v]; },
                          [&](int s, int n) { return load<T>(fields + n * sv + p + s * sd); }, left, right, other);
    }
#else
    (void)fields, (void)sensor;
#endif
    split_flux(read, split);
    for (int v = 0; v < gas_variables; ++v) flux[v] = split[v];
#if HX_SENSORS
    if (asked) blend_flux(state, area, share, rough, other, flux);
#endif
}

// Range: half points -1..n-1.
VECTOR_KERNEL(split_numerical_flux, int i, int j, int k, int o, int sj, int sk, int sd, stride sv,
              const_state_field<gas_variables> q, const_work_field<3> m, const_work_field<HX_FLUX_FIELDS> fields,
              const_work_field<HX_SENSORS> sensor, work_field<gas_variables> flux) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk;
    T split[gas_variables], found[gas_variables];
    split_flux_at(p, (long long)sd, sv, q, m, fields, sensor, split, found);
    for (int v = 0; v < gas_variables; ++v) store(flux + v * sv + p, found[v]);
}

// Range: nodes of a face. Does the work of face_mass where no fluxes are stored.
KERNEL(split_face_mass, int i, int j, int k, int o, int s1, int s2, int sn, stride sv,
       const_state_field<gas_variables> q, const_work_field<3> m, const_work_field<HX_FLUX_FIELDS> fields,
       const_work_field<HX_SENSORS> sensor, rate_field<1> sums) {
    const long long p = o + (long long)i * s1 + (long long)j * s2, outer = sn > 0 ? p - sn : p, sd = sn > 0 ? sn : -sn;
    real split[gas_variables], before[gas_variables], after[gas_variables];
    split_flux_at(outer, sd, sv, q, m, fields, sensor, split, before);
    ROLLED for (int l = 0; l < wall_weighted; ++l) {
        split_flux_at(outer + (l + 1ll) * sn, sd, sv, q, m, fields, sensor, split, after);
        if (wall_row(l) > 0) sums[p - (long long)wall_row(l) * sn] = wall_part(l, before[0], after[0]);
        before[0] = after[0];
    }
}
#endif
