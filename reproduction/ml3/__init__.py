"""ML3 (Fornoni, Caputo and Orabona, 2013)."""
