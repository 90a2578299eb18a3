"""LDKL by depth, beside ML3 and LLC-SAPL of several sizes."""
