"""The projects: packages of a few files each, as they are when nothing is wrong with them. In a workspace each stands alone."""
