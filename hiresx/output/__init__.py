"""What a run leaves and shows: four rooms whose imports run one way, `saved` -> `fields` -> `watch` -> `show`."""
