// Lines of the hybrid form on which the shock sensor is above 0 somewhere, for GPUs. The mark `sensed_tiles` at the
// first node of a tile (split_march.h) of `sensed_planes` planes says whether the sensor is above 0 in that tile. Tiles
// are shorter where a chunk of split_march ends. Ghosts belong to no tile, and their sensors are read.
#ifndef HX_CPU
constexpr int sensed_planes = 8;

// The first of the planes that share a mark with `plane`, in the chunk that begins at plane `begin`
HD int first_sensed(int plane, int begin) { return plane - (plane - begin) % sensed_planes; }

#if HX_SENSORS
// Whether the sensor is above 0 at one of the nodes low..high-1 of line (i, j), or at other nodes in one of their
// tiles. n: nodes of the line; s2: stride of j; sd: stride along the line; march: planes of a chunk of split_march.
// tiles, sensor: at node 0 of line (0, 0).
HD bool senses_across(const mark *tiles, const work_real *sensor, int i, int j, int s2, int sd, int n, int low, int high,
                      int march) {
    // Along the line tiles have `length` nodes, and the pattern of tiles repeats after `period` nodes. Lines along j
    // cross rows of tiles, lines along k cross planes.
    const bool along_k = sd > s2;
    const int length = along_k ? sensed_planes : HX_TILE_J, period = along_k ? march : HX_TILE_J;
    const int across = along_k ? j % HX_TILE_J : j % march % sensed_planes;
    const mark *const of_line = tiles + (i - i % HX_TILE_I) + (long long)(j - across) * s2;
    const work_real *const own = sensor + i + (long long)j * s2;
    bool found = false;
    int s = low < 0 ? 0 : low, in_period = s % period;
    s -= in_period % length, in_period -= in_period % length;
    while (s < n && s < high) {
        found |= load_mask<real>(of_line + (long long)s * sd);
        const int next = in_period + length < period ? in_period + length : period;
        s += next - in_period, in_period = next < period ? next : 0;
    }
    for (s = low; s < 0; ++s) found |= load<real>(own + (long long)s * sd) > real(0);
    for (s = n; s < high; ++s) found |= load<real>(own + (long long)s * sd) > real(0);
    return found;
}
#endif
#endif
