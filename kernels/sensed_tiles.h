// Which lines of the hybrid form have something to do, for GPUs. The shock sensor is above 0 somewhere in a tile
// (split_march.h) of `sensed_planes` planes, or in fewer where a chunk of that kernel ends, if the field `sensed_tiles` is
// true at the first node of these. Ghosts belong to no tile: their sensors are read.
#ifndef HX_CPU
constexpr int sensed_planes = 8;

// The first one of the planes that share a mark with a plane of the chunk that begins at `begin`.
HD int first_sensed(int plane, int begin) { return plane - (plane - begin) % sensed_planes; }

#if HX_SENSORS
// Whether the sensor is above 0 at one of the nodes low..high-1 of line (i, j), of n nodes, or near them in one of their
// tiles. s2: stride of j, sd: of the line; march: planes of a chunk. tiles, sensor: at node 0 of line (0, 0).
HD bool senses_across(const mark *tiles, const work_real *sensor, int i, int j, int s2, int sd, int n, int low, int high,
                      int march) {
    // Along the line tiles have `length` nodes, in periods of `period`: those along j rows, those along k planes.
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
