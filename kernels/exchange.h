// Halo copy inside one process: target[variable j][to[i]] = sign * source[variable j][from[i]].
KERNEL(copy_halo, int i, int j, int k, const int *to, const int *from, const real *source, long long source_sv,
       real *target, long long target_sv, real sign) {
    target[j * target_sv + to[i]] = sign * source[j * source_sv + from[i]];
}
