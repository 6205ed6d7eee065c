// The length of the model is the distance to the wall: averaged flow.
constexpr int spacings = 0;
