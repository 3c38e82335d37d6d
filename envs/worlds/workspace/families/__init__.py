"""The families of the workspace world, one file each."""
