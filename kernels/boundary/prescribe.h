// Prescribed state on the face and in its ghosts (supersonic inflow, inflow profiles):
// state[variable][layer 0..ghost_layers][j][i] of the patch's n1 x n2 nodes.
KERNEL(prescribe, int i, int j, int k, int o, int s1, int s2, int sn, stride sv, int n1, int n2, const real *state,
       state_field<gas_variables> q) {
    const long long p = o + (long long)i * s1 + (long long)j * s2, layer = (long long)n1 * n2;
    for (int v = 0; v < gas_variables; ++v)
        for (int l = 0; l <= ghost_layers; ++l)
            q[v * sv + p - (long long)l * sn] = state[(v * (1 + ghost_layers) + l) * layer + (long long)j * n1 + i];
}
