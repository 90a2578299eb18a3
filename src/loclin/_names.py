"""The models of the package by name, each with its folder: what goes through all goes by it.

Files, `warmup`, the command line and the tests do. A new model is a folder, a line here, and
one in ``loclin/__init__.py`` for tools that do not run the code.
"""

FOLDER_OF = {
    "CSVMClassifier": "csvm",
    "ForestClassifier": "forest",
    "KernelLMKLClassifier": "lmkl",
    "L3MClassifier": "l3m",
    "LDKLClassifier": "ldkl",
    "LLSVMClassifier": "llsvm",
    "LMKLClassifier": "lmkl",
    "ML3Classifier": "ml3",
    "SAPLClassifier": "sapl",
    "SVMKNNClassifier": "svmknn",
    "USSVMClassifier": "ussvm",
}
FOLDERS = tuple(dict.fromkeys(FOLDER_OF.values()))
