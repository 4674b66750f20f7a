"""Sound before it is data: files and rates; needs no TensorFlow."""
