"""LL-SVM with orthogonal coordinate coding (Zhang et al., 2011)."""
