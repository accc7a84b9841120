#!/bin/sh
# Tests and benchmark on a machine that has a CUDA device, torch, triton and cupy, and no package index.
#
#   benchmarks/device/run.sh WHEELS OUT [CORPUS]
#
# WHEELS is the folder that collect.py filled, OUT takes the results, CORPUS is a folder of composites. Nothing is changed
# outside of OUT: what is missing goes into a virtual environment there, over the machine's own packages, and a wheel is
# taken only for what the machine lacks.
set -eu

mkdir -p "$2"
WHEELS=$(cd "$1" && pwd)
OUT=$(cd "$2" && pwd)
CORPUS=${3:+$(cd "$3" && pwd)}
ROOT=$(cd "$(dirname "$0")/../.." && pwd)
PYTHON=${PYTHON:-python3}

# A virtual environment made inside of another one sees the system's packages, not those of the other: they are added by
# a path file.
"$PYTHON" -m venv --system-site-packages --without-pip "$OUT/venv"
HERE=$("$OUT/venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
"$PYTHON" -c 'import site, sysconfig; print("\n".join(dict.fromkeys([sysconfig.get_path("purelib"), *site.getsitepackages()])))' \
  > "$HERE/machine.pth"
echo "$ROOT" > "$HERE/graphkernel.pth"

for WHEEL in "$WHEELS"/*.whl; do
  NAME=$(basename "$WHEEL" | cut -d- -f1)
  if ! "$OUT/venv/bin/python" -c "import importlib.metadata as m, sys; m.version(sys.argv[1])" "$NAME" 2> /dev/null; then
    echo "installing $NAME"
    "$OUT/venv/bin/python" -m zipfile -e "$WHEEL" "$HERE"
  fi
done

cd "$ROOT"
export GRAPHKERNEL_CACHE_DIR="$OUT/cache"
"$OUT/venv/bin/python" -m graphkernel doctor | tee "$OUT/doctor.txt"

# The GPU part of the suite on the device itself; what needs none is shown elsewhere.
"$OUT/venv/bin/python" -m pytest -q -n auto -rfE --tb=short -p no:cacheprovider \
  -o addopts=--import-mode=importlib -o filterwarnings=default \
  tests/kernelgen/targets/gpu tests/graphkernel/runtime/test_device_plans.py tests/graphkernel/runtime/test_gpu_networks.py \
  tests/graphkernel/runtime/test_real_device.py tests/benchmarks/test_gpu.py > "$OUT/tests.txt" 2>&1 || true
tail -n 20 "$OUT/tests.txt"

"$OUT/venv/bin/python" -m benchmarks gpu --json "$OUT/gpu.json" ${CORPUS:+--corpus "$CORPUS"} 2> "$OUT/gpu.err" || true
