"""Serve a model that `loclin fit` has saved: MODEL=churn.loclin uvicorn serve:app"""

import os

import pandas as pd
from fastapi import FastAPI, HTTPException

import loclin.io

model = loclin.io.load(os.environ["MODEL"])
app = FastAPI(title=f"loclin, {model.about_['model']}")


@app.post("/predict")
def predict(rows: list[dict[str, str | float | bool | None]]) -> list[dict[str, float]]:
    """Return the probability of each class, row by row."""
    try:
        shares = model.predict_proba(pd.DataFrame(rows)) if rows else []
    except ValueError as error:  # columns are missing
        raise HTTPException(422, str(error)) from error
    classes = [str(label) for label in model.classes_]
    return [dict(zip(classes, map(float, row), strict=True)) for row in shares]
