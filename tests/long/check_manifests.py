"""Checks the manifests of a folder against Kubernetes' own schemas (kubernetes-validate); kinds of others are parsed only."""
import pathlib
import sys

import kubernetes_validate
import yaml

OTHERS = {"Kustomization", "ScaledObject"}
wrong = 0
for path in sorted(pathlib.Path(sys.argv[1]).glob("*.yaml")):
    for document in yaml.safe_load_all(path.read_text()):
        if document["kind"] in OTHERS:
            continue
        try:
            kubernetes_validate.validate(document, kubernetes_validate.latest_version(), strict=True)
        except kubernetes_validate.ValidationError as error:
            wrong = 1
            print(f"{path}: {document['kind']}: {error.message} at {list(error.path)}")
sys.exit(wrong)
