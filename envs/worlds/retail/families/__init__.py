"""The families of the retail world, one file each."""
