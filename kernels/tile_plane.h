// The nodes of a plane that a tile kernel reads: those of its tile, and `reach` ghosts on each side along i and along j.
#ifndef HX_CPU
// Tiles have `width` by `height` nodes, one for each thread. (i, j): first node of the tile, of ni by nj nodes.
template <int reach, int width, int height> struct TilePlane {
    static_assert(width * height == HX_TILE_THREADS, "a thread for each node");
    int i, j, ni, nj;
    bool along_i, along_j;  // whether ghosts along i and along j are needed

    // The place in memory of node (x, y). Places of corners, which are not used, spare a GPU choices between rows.
    static HD int place(int x, int y) { return (y + reach) * (width + 2 * reach) + x + reach; }
    // Calls visit(x, y, area_i, area_j) if node (x, y) is needed; area_i, area_j: whether its areas along i and j are.
    template <class Visit> HD void node(int x, int y, bool ghosts, const Visit &visit) const {
        const bool column = x >= 0 && x < width && i + x < ni, row = y >= 0 && y < height && j + y < nj;
        const bool area_i = ghosts && along_i && row && i + x < ni + reach;
        const bool area_j = ghosts && along_j && column && j + y < nj + reach;
        if ((column && row) || area_i || area_j) visit(x, y, area_i, area_j);
    }
    // The same for the node of a thread, and for its share of the ghosts
    template <class Visit> HD void bring(int thread, bool ghosts, const Visit &visit) const {
        node(thread % width, thread / width, ghosts, visit);
        constexpr int across = 2 * reach * height, all = across + 2 * reach * width;
        if (!ghosts) return;
        for (int e = thread; e < all; e += HX_TILE_THREADS) {
            const bool row = e < across;
            const int g = row ? e % (2 * reach) : (e - across) / width;
            const int beside = g < reach ? g - reach : g - reach + (row ? width : height);
            node(row ? beside : (e - across) % width, row ? e / (2 * reach) : beside, ghosts, visit);
        }
    }
};

// Fetch a number into memory that a block shares. Numbers that memory keeps in another type than `real` are loaded after
// the others have arrived.
#ifdef HX_WORK_FP32
#define TILE_FETCH(to, from) (void)0
#define TILE_ARRIVE(to, from) to = load<real>(from)
#else
#define TILE_FETCH(to, from) FETCH(to, address(from))
#define TILE_ARRIVE(to, from) (void)0
#endif
#endif
