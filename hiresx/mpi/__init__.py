"""The processes of a run: what the launcher's environment says of them, and how they communicate."""
