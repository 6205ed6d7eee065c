// Search in a table of boxes, whose rows have the layout of the structure Box.

// Returns the last of the `boxes` whose number `first` is at most i.
template <class Box, class Word>
HD const Box &box_of(const Word *box, int boxes, Word Box::*first, Word i) {
    const Box *all = reinterpret_cast<const Box *>(box);
    int low = 0, high = boxes;
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        (all[middle].*first <= i ? low : high) = middle;
    }
    return all[low];
}
