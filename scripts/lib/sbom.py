"""Writes a bill of materials in SPDX 2.3 for the files of a release: sbom.py FOLDER OUT.spdx.json

The third-party parts come from cmake/notices.cmake. SOURCE_DATE_EPOCH sets the time.
"""
import datetime
import hashlib
import json
import os
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Licences that cmake/notices.cmake names in words.
SPDX = {"Unicode-DFS": "Unicode-DFS-2016", "MIT or public domain": "MIT OR Unlicense",
        "MIT, Apache-2.0 with LLVM exceptions": "MIT AND Apache-2.0 WITH LLVM-exception"}


def version():
    return re.search(r"project\(oriel VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")).group(1)


def components():
    """(id, name, licence, owner, address) of each third-party part."""
    text = (ROOT / "cmake/notices.cmake").read_text(encoding="utf-8")
    for name, row in re.findall(r'^set\(oriel_notice_(\w+) "([^"]+)"\)', text, re.M):
        title, licence, owner, address = row.split("|")[:4]
        yield name, title, SPDX.get(licence, licence), owner, address


def package(identifier, name, licence, owner, address, **more):
    return {"SPDXID": f"SPDXRef-{identifier}", "name": name, "licenseConcluded": licence, "licenseDeclared": licence,
            "copyrightText": owner, "downloadLocation": address, "filesAnalyzed": False, **more}


def document(folder):
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    time = datetime.datetime.fromtimestamp(int(epoch), datetime.timezone.utc) if epoch \
        else datetime.datetime.now(datetime.timezone.utc)
    files = []
    for number, path in enumerate(sorted(path for path in folder.iterdir() if path.is_file()), 1):
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        files.append({"SPDXID": f"SPDXRef-File-{number}", "fileName": f"./{path.name}",
                      "checksums": [{"algorithm": "SHA256", "checksumValue": digest}]})
    key = hashlib.sha256("".join(file["checksums"][0]["checksumValue"] for file in files).encode()).hexdigest()[:16]
    parts = [package("oriel", "oriel", "Apache-2.0", "The Oriel authors", "NOASSERTION", versionInfo=version())]
    parts += [package(*component) for component in components()]
    relations = [("SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-oriel")]
    relations += [("SPDXRef-oriel", "DEPENDS_ON", part["SPDXID"]) for part in parts[1:]]
    relations += [(file["SPDXID"], "GENERATED_FROM", "SPDXRef-oriel") for file in files]
    return {"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
            "name": f"oriel-{version()}", "documentNamespace": f"https://oriel.example/spdx/oriel-{version()}-{key}",
            "creationInfo": {"created": time.strftime("%Y-%m-%dT%H:%M:%SZ"), "creators": ["Tool: scripts/release.sh"]},
            "packages": parts, "files": files,
            "relationships": [{"spdxElementId": a, "relationshipType": kind, "relatedSpdxElement": b}
                              for a, kind, b in relations]}


def main():
    folder, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    out.write_text(json.dumps(document(folder), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
