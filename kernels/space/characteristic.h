// Interpolate the local characteristic fields (the paper's choice).
template <class T> using Space = CharacteristicSpace<T>;
