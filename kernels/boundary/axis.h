// Axis of axisymmetric flow, the line y = 0. The ghosts behind the axis are the mirror image of the flow, with v and w
// (swirl) of opposite sign. The coordinates behind the axis are mirrored too (hiresx/decomposition/coordinates.py), so
// the condition is exact.
KERNEL(axis_node, int i, int j, int k, int o, int s1, int s2, int sn, stride sv, state_field<gas_variables> q) {
    const long long p = o + (long long)i * s1 + (long long)j * s2;
    const real y = q[2 * sv + p], z = q[3 * sv + p];
    q[4 * sv + p] -= real(0.5) * (y * y + z * z) / q[p];
    q[2 * sv + p] = q[3 * sv + p] = real(0);
    (void)sn;
}

KERNEL(axis_ghost, int i, int j, int k, int o, int s1, int s2, int sn, stride sv, state_field<conserved_variables> q) {
    const long long p = o + (long long)i * s1 + (long long)j * s2;
    for (int l = 1; l <= ghost_layers; ++l)
        for (int v = 0; v < conserved_variables; ++v) {
            const real value = q[v * sv + p + (long long)l * sn];
            q[v * sv + p - (long long)l * sn] = v == 2 || v == 3 ? -value : value;
        }
}

// Ghosts of the normal viscous flux: even for momentum y and z, odd for momentum x, energy and the scalars.
KERNEL(axis_flux, int i, int j, int k, int o, int s1, int s2, int sn, stride sv,
       work_field<gradient_variables> flux) {
    const long long p = o + (long long)i * s1 + (long long)j * s2;
    for (int l = 1; l <= ghost_layers; ++l)
        for (int c = 0; c < gradient_variables; ++c) {
            const real value = flux[c * sv + p + (long long)l * sn];
            flux[c * sv + p - (long long)l * sn] = c == 1 || c == 2 ? value : -value;
        }
}
