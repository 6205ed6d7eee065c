"""What is shown: progress and time left, pictures, what is in a file, how two results differ.

Uses `saved`, `fields` and `watch`; nothing that computes uses it.
"""
