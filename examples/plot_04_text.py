"""
Text: which words decide?
=========================

Which team should answer a message, and which of its words say so? Sparse rows of
``TfidfVectorizer`` go into a classifier as they are.
"""

# %%
# Messages
# --------
# Messages for three teams are made here from phrases. Of one message in ten the
# label is drawn at random.
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from loclin import ML3Classifier
from loclin.inspection import LocalModelDisplay, feature_importances

phrases = {
    "billing": ["charged twice this month", "the invoice is wrong", "refund my payment",
                "the discount is not on my invoice", "my card was declined"],
    "delivery": ["my parcel is late", "the courier left it in the rain", "the box came broken",
                 "it was sent to my old address", "the tracking page shows nothing"],
    "support": ["the app crashes at the login", "the password reset shows an error",
                "the page is slow and broken", "my screen stays black", "sync shows an error"],
}  # fmt: skip
greetings = ["hello", "good morning", "please help", "this is urgent", "thank you", "again"]

rng = np.random.default_rng(0)
teams = list(phrases)
y = rng.choice(teams, 900)
messages = [
    ", ".join([rng.choice(greetings), *rng.choice(phrases[team], 2, replace=False)]) for team in y
]
y = np.where(rng.random(len(y)) < 0.1, rng.choice(teams, len(y)), y)
print(messages[0])

# %%
# Sparse rows stay sparse
# -----------------------
# A row has a number for each word of the vocabulary, and most of these are zero.
train, test, y_train, y_test = train_test_split(messages, y, random_state=0)
model = make_pipeline(TfidfVectorizer(), ML3Classifier(random_state=0)).fit(train, y_train)
print(f"accuracy {model.score(test, y_test):.3f}")

# %%
# The words of one message
# ------------------------
# The words are the columns. They are compared with a message without words, so the bars are those
# of the words that are there.
message = ["good morning, the invoice is wrong, the page is slow"]
LocalModelDisplay.from_estimator(model, message).plot(max_columns=8)

# %%
# Without a word
# --------------
# The bars keep the linear model of the whole message. Without a word, another one may act. So ask
# the model again.
score = model.decision_function(message)[0].max()
for word in ("invoice", "wrong", "slow"):
    (without,) = model.decision_function([message[0].replace(word, "")])
    print(f"without {word!r}: {without.max() - score:+.2f}")

# %%
# The words of each team
# ----------------------
# The mean size of these parts, over the messages given to a team, ranks its words.
sizes = feature_importances(model, test, by="class")
for team, row in sizes.iterrows():
    print(f"{team}: {', '.join(row.nlargest(5).index)}")

# %%
# What to take away
# -----------------
# A text needs nothing but a vectorizer in front. The words' parts sum to the score of a message.
# What the score is without a word is another question.
