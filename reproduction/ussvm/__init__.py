"""US-SVM (Lyu et al., 2016)."""
