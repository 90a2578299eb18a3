"""Every classifier with its default settings, against tuned and default rivals."""
