"""Tables as they are: columns of numbers, categories, dates and text become features.

`TableEncoder` stands in front of any classifier in a scikit-learn pipeline, so that what it
learns of a table (medians, categories, words) is learned inside the folds of a
cross-validation. `read` reads CSV and Parquet files. `loclin.inspection.contributions` explains a
prediction in the table's own columns.

It needs pandas, and DuckDB for files: ``pip install "loclin[tables]"``.
"""

from loclin.tables.encoder import TableEncoder
from loclin.tables.files import UnreadableFile
from loclin.tables.reading import read, read_parts

__all__ = ["TableEncoder", "UnreadableFile", "read", "read_parts"]
