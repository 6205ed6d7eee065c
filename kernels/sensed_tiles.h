// Where sweeps of the hybrid form find something to do, for GPUs. The field `sensed_tiles` says at the first node of every
// tile of a plane k (split_march.h) whether the shock sensor is above 0 anywhere in the tile. Ghosts belong to no tile:
// their sensors are read.
#if HX_SENSORS && !defined(HX_CPU)
HD int first_of_tile(int n, int width) { return n - n % width; }

// Among the nodes low..high-1 of line (i, j), of n nodes, or in tiles that have some of them. s2: stride of j, sd: of the
// line. tiles, sensor: at node 0 of line (0, 0).
HD bool senses_across(const mark *tiles, const work_real *sensor, int i, int j, int s2, int sd, int n, int low, int high) {
    const bool along_k = sd > s2;  // a tile then has one node of a line, else as many as it has rows
    const int width = along_k ? 1 : HX_TILE_J;
    const mark *const of_line =
        tiles + first_of_tile(i, HX_TILE_I) + (long long)(along_k ? first_of_tile(j, HX_TILE_J) : j) * s2;
    const work_real *const own = sensor + i + (long long)j * s2;
    bool found = false;
    for (int s = first_of_tile(low < 0 ? 0 : low, width); s < n && s < high; s += width)
        found |= load_mask<real>(of_line + (long long)s * sd);
    for (int s = low; s < 0; ++s) found |= load<real>(own + (long long)s * sd) > real(0);
    for (int s = n; s < high; ++s) found |= load<real>(own + (long long)s * sd) > real(0);
    return found;
}

// Among the elements low..high-1 of the rows of a plane (fused.h), the share of one of 32 lanes. tiles, sensor: at node 0 of
// row 0.
HD bool senses_along(const mark *tiles, const work_real *sensor, int lane, int sj, int n, int rows, int low, int high) {
    const int of_row = (n + HX_TILE_I - 1) / HX_TILE_I + 1;  // tiles, and the ghosts at both ends
    const int first = low < 0 ? 0 : low / sj, end = (high - 1) / sj < rows ? (high - 1) / sj + 1 : rows;
    bool found = false;
    for (int at = lane; at < (end - first) * of_row; at += 32) {
        const int row = first + at / of_row, tile = at % of_row;
        if (tile < of_row - 1)
            found |= load_mask<real>(tiles + (long long)first_of_tile(row, HX_TILE_J) * sj + tile * HX_TILE_I);
        else
            for (int s = 0; s < split_reach; ++s)
                found |= load<real>(sensor + (long long)row * sj + n + s) > real(0)
                         || load<real>(sensor + (long long)row * sj - 1 - s) > real(0);
    }
    return found;
}
#endif
