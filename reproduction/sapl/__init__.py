"""LLC-SAPL (Mao et al., 2015)."""
