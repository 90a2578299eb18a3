"""The five papers, table by table: ``python -m reproduction``."""
