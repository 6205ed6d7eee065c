// Slip wall and symmetry: the node on the face keeps density and internal energy and loses its normal momentum; the
// ghosts mirror the inside about the face's own normal.
KERNEL(reflect_node, int i, int j, int k, int o, int s1, int s2, int sn, stride sv, const_work_field<3> m,
       state_field<gas_variables> q) {
    const long long p = o + (long long)i * s1 + (long long)j * s2;
    const real n[3] = {m[p], m[sv + p], m[2 * sv + p]};
    const real area2 = n[0] * n[0] + n[1] * n[1] + n[2] * n[2];
    const real flow = n[0] * q[sv + p] + n[1] * q[2 * sv + p] + n[2] * q[3 * sv + p];
    for (int c = 0; c < 3; ++c) q[(c + 1) * sv + p] -= flow / area2 * n[c];
    q[4 * sv + p] -= real(0.5) * flow * flow / (area2 * q[p]);
}

KERNEL(reflect_ghost, int i, int j, int k, int o, int s1, int s2, int sn, stride sv, const_work_field<3> m,
       state_field<gas_variables> q) {
    const long long p = o + (long long)i * s1 + (long long)j * s2;
    const real n[3] = {m[p], m[sv + p], m[2 * sv + p]};
    const real area2 = n[0] * n[0] + n[1] * n[1] + n[2] * n[2];
    for (int l = 1; l <= ghost_layers; ++l) {
        const long long from = p + (long long)l * sn, to = p - (long long)l * sn;
        const real twice = real(2) * (n[0] * q[sv + from] + n[1] * q[2 * sv + from] + n[2] * q[3 * sv + from]) / area2;
        q[to] = q[from];
        for (int c = 0; c < 3; ++c) q[(c + 1) * sv + to] = q[(c + 1) * sv + from] - twice * n[c];
        q[4 * sv + to] = q[4 * sv + from];
    }
}
