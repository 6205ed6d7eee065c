"""The output of a run, in four packages whose imports run one way: `saved` -> `fields` -> `watch` -> `show`."""
