// Where the shock sensor of the hybrid form is above 0, for GPUs. The mark `sensed_tiles` at the first node of a tile
// (split_march.h) of `sensed_planes` planes says whether the sensor is above 0 in that tile. Tiles are shorter where a
// chunk of split_march ends. Ghosts belong to no tile, and their sensors are read.
#ifndef HX_CPU
constexpr int sensed_planes = 8;

// The first of the planes that share a mark with `plane`, in the chunk that begins at plane `begin`
HD int first_sensed(int plane, int begin) { return plane - (plane - begin) % sensed_planes; }

// Whether a column of tiles has a mark in one of the planes low..high-1 of n. march: planes of a chunk of split_march;
// tiles: at the first node of the column.
HD bool senses(const mark *tiles, int low, int high, int n, int sk, int march) {
    bool found = false;
    int plane = low < 0 ? 0 : low, in_chunk = plane % march;
    plane -= in_chunk % sensed_planes, in_chunk -= in_chunk % sensed_planes;
    while (plane < n && plane < high) {
        found |= load_mask<real>(tiles + (long long)plane * sk);
        const int next = in_chunk + sensed_planes < march ? in_chunk + sensed_planes : march;
        plane += next - in_chunk, in_chunk = next < march ? next : 0;
    }
    return found;
}
#endif
