"""Files that stock PyTorch writes: the models they come from and the code that makes them."""
