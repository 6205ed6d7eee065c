// Supersonic outflow: every characteristic leaves; the ghosts repeat the node on the face.
KERNEL(extrapolate, int i, int j, int k, int o, int s1, int s2, int sn, long long sv, real *q) {
    const long long p = o + (long long)i * s1 + (long long)j * s2;
    for (int v = 0; v < 5; ++v)
        for (int l = 1; l <= 3; ++l) q[v * sv + p - (long long)l * sn] = q[v * sv + p];
}
