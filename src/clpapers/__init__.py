"""Five continual-learning papers, regenerated from images to tables."""
