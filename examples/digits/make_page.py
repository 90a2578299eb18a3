"""Write a web page that recognises drawn digits, and says why: python make_page.py [index.html]

The page is one file. Open it in a browser, or send it to a phone: it needs no server, network or
Python.
"""

import json
import re
import sys
from pathlib import Path

import numpy as np
from scipy.ndimage import affine_transform
from sklearn.datasets import load_digits

from loclin import ML3Classifier
from loclin.portable import describe

FOLDER = Path(__file__).parent


def slanted(images, slant):
    """Return images whose rows are moved aside, by so many squares for each square of height."""
    matrix = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, -slant, 1.0]])
    middle = np.array([0.0, 3.5, 3.5])  # stays where it is
    return affine_transform(images, matrix, middle - matrix @ middle, order=1)


images, labels = load_digits(return_X_y=True)
X_train, y_train, X_test, y_test = images[:1300], labels[:1300], images[1300:], labels[1300:]

# People slant their digits: copies that do so take a third of the errors away.
upright = X_train.reshape(-1, 8, 8)
copies = [upright, slanted(upright, -0.2), slanted(upright, 0.2)]
model = ML3Classifier(4, pieces=None, random_state=0)
model.fit(np.concatenate(copies).reshape(-1, 64), np.tile(y_train, len(copies)))
accuracy = model.score(X_test, y_test)
print(f"accuracy {accuracy:.3f}")

data = {
    "description": describe(model).to_dict(),
    "reference": X_train.mean(axis=0).tolist(),  # the average digit, which reasons compare with
    "accuracy": accuracy,
}
page = (FOLDER / "page.html").read_text()
page = page.replace("{}", json.dumps(data))
page = re.sub(
    r'<script src="(.+?)"></script>',
    lambda tag: f"<script>\n{(FOLDER / tag[1]).read_text()}</script>",
    page,
)
path = Path(sys.argv[1] if len(sys.argv) > 1 else FOLDER / "index.html")
path.write_text(page)
print(f"{path}: {len(page) / 1000:.0f} kB")
