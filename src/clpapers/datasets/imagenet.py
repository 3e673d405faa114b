"""ImageNet's normalisation, in a module of its own: images and weights import it, and it imports nothing."""

# Means and deviations of red, green and blue, in [0, 1], that torchvision normalises by.
NORMALISATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
