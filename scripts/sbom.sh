#!/usr/bin/env bash
# Writes a software bill of materials (SPDX 2.3, JSON): AutoGraph, and each Debian package of which the programs load a library or were
# built from headers, with version and licence file. Usage: scripts/sbom.sh BUILD OUT.json
set -euo pipefail
build=$1 out=$2
here=$(dirname "$0")/..
version=$("$build/autograph" --version | grep -oE '[0-9]+\.[0-9]+\.[0-9]+' | head -1)
packages=$(
  {
    for file in "$build"/autograph "$build"/autographd "$build"/autograph-worker "$build"/libautograph.so "$build"/libautograph_cuda.so; do
      if [[ -e $file ]]; then ldd "$file" | awk '$2 == "=>" && $3 ~ /^\// {print $3}'; fi
    done | sort -u | while read -r library; do
      dpkg -S "$(realpath "$library")" "/usr$library" "$library" 2>/dev/null | head -1 | cut -d: -f1
    done
    cat "$here/cmake/licensed_packages.txt"
  } | sort -u
)
created=$(date -u -d "@${SOURCE_DATE_EPOCH:-$(date +%s)}" +%Y-%m-%dT%H:%M:%SZ)
{
  cat <<HEAD
{
  "spdxVersion": "SPDX-2.3",
  "dataLicense": "CC0-1.0",
  "SPDXID": "SPDXRef-DOCUMENT",
  "name": "autograph-$version",
  "documentNamespace": "https://autograph.invalid/spdx/autograph-$version-$(sha256sum "$build/autograph" | cut -c1-16)",
  "creationInfo": {"created": "$created", "creators": ["Tool: scripts/sbom.sh"]},
  "packages": [
    {"SPDXID": "SPDXRef-autograph", "name": "autograph", "versionInfo": "$version", "downloadLocation": "NOASSERTION", "filesAnalyzed": false, "licenseConcluded": "NOASSERTION", "licenseDeclared": "NOASSERTION", "copyrightText": "NOASSERTION"}
HEAD
  for package in $packages; do
    id=$(tr -c 'A-Za-z0-9.-' '-' <<<"$package" | sed 's/-*$//')
    found=$(dpkg-query -W -f='${Version} ${source:Package} ${Architecture}' "$package" 2>/dev/null) || continue
    read -r of source architecture <<<"$found"
    printf '    ,{"SPDXID": "SPDXRef-%s", "name": "%s", "versionInfo": "%s", "supplier": "Organization: Debian", "sourceInfo": "source package %s", "downloadLocation": "NOASSERTION", "filesAnalyzed": false, "licenseConcluded": "NOASSERTION", "licenseDeclared": "NOASSERTION", "copyrightText": "NOASSERTION", "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": "pkg:deb/debian/%s@%s?arch=%s"}]}\n' \
      "$id" "$package" "$of" "$source" "$package" "${of//+/%2B}" "$architecture"
  done
  echo '  ],'
  echo '  "relationships": ['
  echo '    {"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": "SPDXRef-autograph"}'
  for package in $packages; do
    id=$(tr -c 'A-Za-z0-9.-' '-' <<<"$package" | sed 's/-*$//')
    dpkg-query -W "$package" >/dev/null 2>&1 || continue
    printf '    ,{"spdxElementId": "SPDXRef-autograph", "relationshipType": "DEPENDS_ON", "relatedSpdxElement": "SPDXRef-%s"}\n' "$id"
  done
  echo '  ]'
  echo '}'
} >"$out"
