"""What knows no paper: compiled loops, the loaders of rows and codes, scores, descent."""
