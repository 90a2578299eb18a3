"""L3M (Wang and Saligrama, 2013)."""
